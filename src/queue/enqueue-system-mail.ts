/**
 * Enqueues mail the server writes itself: forwarded postmaster@ and abuse@ mail.
 *
 * Call it in the transaction of the event it reports. It is sent with the null return path, so it never causes bounces
 * (RFC 5321 §4.5.5). It belongs to no workspace: no sending limits apply and no message log shows it. Throws if the
 * recipient is not a valid address.
 */
import type { NewId } from '../core/ids.js'
import { APPLIANCE } from '../core/owner.js'
import type { Tx } from '../db/database.js'
import { parseAddress } from '../mail/address.js'
import { insertContent } from '../messages/content-store.js'
import { laneKey } from './lane.js'
import { PRIORITIES } from '../messages/mail-origin.js'
import { insertMessages } from '../messages/message-store.js'
import { insertQueueEntries } from './queue-store.js'

export interface SystemMailParts {
  readonly newId: NewId
  /** Retry period, ms. */
  readonly expireMs: number
  readonly onEnqueued: (lane: string, dueAt: number) => void
}

export interface SystemMail {
  /** Makes the insert idempotent: pass the same id for the same report. Default: a new id. */
  readonly contentId?: string
  readonly from: string
  readonly to: string
  readonly subject: string
  /** Complete message with CRLF line endings, at most one part long. */
  readonly message: Buffer
  /** Domain whose DKIM keys sign it; null leaves it unsigned. */
  readonly signingDomainId: string | null
  /** Ms since epoch UTC. */
  readonly createdAt: number
}

export async function enqueueSystemMail(tx: Tx, parts: SystemMailParts, mail: SystemMail): Promise<string> {
  const recipient = parseAddress(mail.to)
  if (!recipient) throw new Error(`invalid recipient of system mail: ${mail.to}`)
  const { createdAt, message } = mail
  const workspaceId = APPLIANCE
  const { contentId = parts.newId() } = mail
  const messageId = parts.newId()
  const content = {
    id: contentId,
    workspaceId,
    from: { address: mail.from },
    subject: mail.subject,
    signingDomainId: mail.signingDomainId,
    trackOpens: false,
    trackClicks: false,
    createdAt,
    relayed: { firstPart: message, size: message.length },
  }
  await insertContent(tx.db, content)
  await insertMessages(tx.db, content, false, [
    { id: messageId, recipient: recipient.address, status: 'sent', reason: null },
  ])
  await insertQueueEntries(tx.db, [
    {
      messageId,
      workspaceId,
      destination: recipient.domain,
      priority: PRIORITIES.transactional,
      nextAttemptAt: createdAt,
      expiresAt: createdAt + parts.expireMs,
      enqueuedAt: createdAt,
      contentId,
      recipient: recipient.address,
    },
  ])
  tx.onCommit(() =>
    parts.onEnqueued(laneKey(recipient.domain, PRIORITIES.transactional, workspaceId), createdAt),
  )
  return messageId
}
