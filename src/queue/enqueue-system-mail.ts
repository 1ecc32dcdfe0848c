/**
 * Puts a finished message of the appliance itself into the queue: delivery reports to submitters, mail to postmaster@
 * and abuse@ that is forwarded.
 *
 * Called in the transaction of what it reports. Such mail leaves with the null return path, so that nothing can ever come
 * back about it (RFC 5321 §4.5.5). It is no workspace's mail, whatever it reports of: it passes no door, counts against no
 * limit, stands in nobody's message log, and a consumer of the event log hears of it only where it asks for that. Fails: throws a plain Error for a recipient that is no address.
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
  /** How long it is tried, ms. */
  readonly expireMs: number
  /** Tells the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
}

export interface SystemMail {
  /** For a report that must not be made twice: the same each time. A new one where absent. */
  readonly contentId?: string
  readonly from: string
  readonly to: string
  readonly subject: string
  /** Finished, CRLF line ends; at most one part long. */
  readonly message: Buffer
  /** Whose DKIM keys sign it; null for nobody. */
  readonly signingDomainId: string | null
  /** Ms since epoch UTC. */
  readonly createdAt: number
}

/** @returns the id of its message */
export async function enqueueSystemMail(tx: Tx, parts: SystemMailParts, mail: SystemMail): Promise<string> {
  const recipient = parseAddress(mail.to)
  if (!recipient) throw new Error('mail of the appliance needs an address to go to')
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
