/**
 * Origin of a mail: transactional or marketing, and the campaign or automation it is part of. The same for all messages of a content.
 *
 * Decides the lane and which suppressions apply, and is included in every event about the mail. Pure.
 */
import { given } from '../core/given.js'
import { addressDomain } from '../mail/address.js'
import type { AboutMessage } from '../events/event.js'

/** Lower goes first. `campaign` is all bulk mail, batches included. */
export const PRIORITIES = { transactional: 0, campaign: 1 } as const
export type Priority = (typeof PRIORITIES)[keyof typeof PRIORITIES]

export type MailOrigin = Pick<
  AboutMessage,
  'isMarketing' | 'campaignId' | 'automationId' | 'batchId' | 'templateId' | 'tags' | 'senderDomain'
>

export interface OriginFields {
  /** The sender declared it marketing; campaigns and automations are marketing without it. */
  readonly isMarketing?: boolean
  readonly campaignId?: string
  readonly automationId?: string
  readonly templateId?: string
  readonly batch?: { readonly id: string; /** From 0. */ readonly index: number }
  readonly tags?: readonly string[]
}

export function originOf(
  content: OriginFields & { readonly from: { readonly address: string } },
): MailOrigin {
  const { campaignId, automationId, templateId, batch, tags, from } = content
  const isMarketing = isMarketingMail(content)
  return {
    ...(isMarketing ? { isMarketing } : {}),
    ...given({ campaignId, automationId }),
    ...(batch === undefined ? {} : { batchId: batch.id }),
    ...given({ templateId, tags }),
    senderDomain: addressDomain(from.address),
  }
}

export function isMarketingMail({ isMarketing, campaignId, automationId }: OriginFields): boolean {
  return isMarketing === true || campaignId !== undefined || automationId !== undefined
}

/** Marketing and batches are bulk and wait for single mails. */
export function priorityOf(content: OriginFields): Priority {
  const isBulk = content.batch !== undefined || isMarketingMail(content)
  return isBulk ? PRIORITIES.campaign : PRIORITIES.transactional
}
