/**
 * `POST /email/:messageId/resend`: resends a stored message, to the same or another address.
 *
 * The copy is a new message with its own content row, so retention and statistics treat it as any other mail. It is no longer part of a
 * campaign, an automation or a batch, but it stays marketing mail if it was. Fails: AppError with the codes of the route.
 */
import Type, { type Static } from 'typebox'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { recordActivity } from '../../events/activity-store.js'
import { Id } from '../../http/answer/answer-fields.js'
import type { IdempotencyClaim, KeptAnswer } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import { normalizedAddress } from '../../mail/address.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { copyParts, findContents, type MessageContent } from '../../messages/content-store.js'
import { isMarketingMail } from '../../messages/mail-origin.js'
import { findMergeSources, type Message } from '../../messages/message-store.js'
import type { SubmittedRecipient } from '../mail-submission.js'
import { submitAll } from '../submit.js'
import type { SendParts } from './send-email.js'

export const ResendBody = Type.Object(
  {
    to: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_MAILBOX_LENGTH,
        description: 'One address without a name. Default: the recipient of the message.',
      }),
    ),
  },
  { additionalProperties: false, title: 'ResendRequest' },
)
export type ResendBody = Static<typeof ResendBody>

export const ResendResult = Type.Object(
  {
    message_id: Id({ description: 'Of the new message.' }),
    to: Type.String({ description: 'Its domain as lower-case A-labels.' }),
    resent_from: Id({ description: 'Of the message that was sent again.' }),
  },
  { title: 'ResendResult' },
)

export interface ResendAnswer extends KeptAnswer {
  readonly value: Static<typeof ResendResult>
}

export interface ResendRequest {
  readonly principal: Principal
  readonly message: Message
  readonly body: ResendBody
  readonly claim: IdempotencyClaim | undefined
  /** Client address. */
  readonly peer: string
}

/** @throws AppError not_found, domain_invalid, conflict, validation_error, rate_limited, limit_reached */
export async function resendEmail(parts: SendParts, request: ResendRequest): Promise<ResendAnswer> {
  const { principal, message, body, claim, peer } = request
  const { database, clock } = parts
  const now = clock.now()
  const to = body.to?.trim() ?? message.recipient
  refuseWaiting(message, to)
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const stored = await findStored(parts, message)
  await requireSender(parts, principal.workspaceId, stored)
  const content = { ...copyOf(stored), id: parts.newId(), submittedBy: { keyId: principal.keyId, peer } }
  const data = (await findMergeSources(database.reader, [message.id])).get(message.id)?.mergeData
  const submission = {
    content,
    to: [to],
    key: principal,
    ...(data === undefined ? {} : { data: new Map([[to, data]]) }),
  }
  const batch = { workspace, isSandbox: principal.isSandbox, submissions: [submission] }
  database.storage.requireRoom()
  return database.write(async tx => {
    const [[recipient] = []] = await submitAll(tx, parts, batch, now)
    if (!recipient) throw new AppError('validation_error', 'no recipient', { path: 'to' })
    requireMailed(recipient)
    await copyParts(tx.db, stored.id, content.id)
    const answer = {
      status: 200,
      value: { message_id: recipient.messageId, to: recipient.address, resent_from: message.id },
    }
    await recordActivity(tx, principal, now, {
      action: 'email.resent',
      subject: recipient.address,
      details: { message_id: recipient.messageId, resent_from: message.id },
    })
    await keepAnswer(tx.db, claim, answer)
    return answer
  })
}

/** A second copy to the same recipient while the first is under way is never what anybody wants. */
function refuseWaiting({ status, recipient }: Message, to: string): void {
  const isWaiting = status === 'scheduled' || status === 'sent'
  if (isWaiting && normalizedAddress(to) === normalizedAddress(recipient))
    throw new AppError(
      'conflict',
      `the message to ${recipient} is still waiting to be delivered; retry it in the queue instead`,
    )
}

async function findStored({ database }: SendParts, { id, contentId }: Message): Promise<MessageContent> {
  const [stored] = await findContents(database.reader, [contentId])
  if (stored && !stored.isPruned) return stored
  throw new AppError('not_found', `the text of message ${id} is no longer stored (retention.content)`)
}

/** The domain may have been removed, or have lost its verification, since. */
async function requireSender(parts: SendParts, workspaceId: string, { from }: MessageContent): Promise<void> {
  const workspace = await parts.senders.workspace(workspaceId)
  const asked = { fromAddress: from.address, name: from.name }
  const sender = await parts.senders.sender(workspace, asked)
  if (sender.from.address !== from.address)
    throw new AppError('domain_invalid', `this workspace may no longer send as ${from.address}`)
}

/** Without what ties it to its first sending. */
function copyOf(stored: MessageContent) {
  const { from, replyTo, subject, html, text, signingDomainId, trackOpens, trackClicks } = stored
  const { tags, addressees, headers, attachments, merging, relayed, templateId } = stored
  return {
    from,
    subject,
    signingDomainId,
    trackOpens,
    trackClicks,
    ...given({ replyTo, html, text, tags, addressees, headers, attachments, merging, relayed, templateId }),
    ...(isMarketingMail(stored) ? { isMarketing: true } : {}),
  }
}

function requireMailed({ skip, asked, address }: SubmittedRecipient): void {
  if (skip === null) return
  if (skip === 'suppressed')
    throw new AppError('conflict', `${address} is suppressed; remove the suppression to send to it again`, {
      path: 'to',
    })
  throw new AppError('validation_error', `to is not a valid address: ${asked}`, { path: 'to' })
}
