/**
 * What a mail is: asked for by its recipient or marketing, and what it is part of. The same for all messages of a content.
 *
 * Made at the door of what stands in the content; decides the lane and which suppressions stop the mail, and goes into every
 * event about it. Pure.
 */
import { given } from '../core/given.js'
import { addressDomain } from '../mail/address.js'
import type { AboutMessage } from '../events/event.js'

/** Lower goes first. `campaign` is all bulk mail, batches as well: nobody waits for one of its messages as for a single one. */
export const PRIORITIES = { transactional: 0, campaign: 1 } as const
export type Priority = (typeof PRIORITIES)[keyof typeof PRIORITIES]

/** Empty for a single send or relayed mail. */
export type MailOrigin = Pick<
  AboutMessage,
  'isMarketing' | 'campaignId' | 'automationId' | 'batchId' | 'templateId' | 'tags' | 'senderDomain'
>

/** Fields of a content that say what it is. */
export interface OriginFields {
  /** Its workspace says that an unsubscribe stops it; campaigns and automations are marketing without it. */
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

/** An unsubscribe stops it: campaigns and automations always, other mail where its workspace says so. */
export function isMarketingMail({ isMarketing, campaignId, automationId }: OriginFields): boolean {
  return isMarketing === true || campaignId !== undefined || automationId !== undefined
}

/** Bulk waits for what somebody waits for: marketing, and batches, of which nobody waits for the next message as for the only one. */
export function priorityOf(content: OriginFields): Priority {
  const isBulk = content.batch !== undefined || isMarketingMail(content)
  return isBulk ? PRIORITIES.campaign : PRIORITIES.transactional
}
