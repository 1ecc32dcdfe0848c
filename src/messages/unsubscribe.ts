/**
 * Somebody wants no more of what was not asked for: the one way in for links, pages, unsubscribe mail and opt-out reports.
 *
 * Called inside the transaction of whoever took the wish, who wakes the consumers of the event log after it. The address is suppressed
 * for marketing and the contact opted out there and then, so that nothing leaves any more once the wish was answered. Who unsubscribes still wants to hear of an order. It needs no row of the message: links are followed
 * years later. Told once: what is so already changes nothing and appends nothing.
 * Standards: RFC 8058, RFC 2369 §3.2. Fails: as the database does.
 */
import { findPublicSender } from '../accounts/public-sender.js'
import { findContact } from '../audience/contacts/contacts.js'
import { optOut } from '../audience/contacts/follow-suppressions.js'
import type { Queries, Tx } from '../db/database.js'
import { findReasons, insertSuppression } from '../deliverability/suppressions/suppression-store.js'
import type { EmailUnsubscribed } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { normalizedAddress } from '../mail/address.js'
import { recordTransitions } from './message-history.js'

export interface UnsubscribeRequest {
  /** Of a sandbox the sandbox's. */
  readonly workspaceId: string
  /** In whatever form. */
  readonly recipient: string
  /** The message whose link was followed; it may be gone. */
  readonly messageId: string
  readonly source: EmailUnsubscribed['payload']['source']
  /** Ms since epoch UTC. */
  readonly at: number
}

/** @returns whether it was new */
export async function unsubscribeRecipient(tx: Tx, wish: UnsubscribeRequest): Promise<boolean> {
  const { workspaceId, recipient, messageId, source, at } = wish
  const email = normalizedAddress(recipient)
  const { isSandbox = false } = (await findPublicSender(tx.db, workspaceId)) ?? {}
  const suppression = { workspaceId, email, reason: 'unsubscribe', scope: 'marketing' } as const
  // An outcome that is played can be played again: a sandbox suppresses only by hand.
  const isSuppressed =
    isSandbox ||
    !(await insertSuppression(tx.db, { ...suppression, sourceMessageId: messageId, createdAt: at }))
  if (isSuppressed && (await isKnown(tx.db, workspaceId, email))) return false
  const transition = { kind: 'unsubscribed', messageId, at, facts: { source } } as const
  const taken = await recordTransitions(tx, [transition])
  if (taken.size === 0)
    await appendEvents(tx, [
      {
        kind: 'email.unsubscribed',
        workspaceId,
        messageId,
        isSandbox,
        occurredAt: at,
        payload: { to: recipient, source },
      },
    ])
  await optOut(tx, { workspaceId, isSandbox, source }, email, at)
  return true
}

/** Suppressed for another reason, somebody may still be told that the wish is theirs now; once told, the contact says so. */
async function isKnown(db: Queries, workspaceId: string, email: string): Promise<boolean> {
  const reason = (await findReasons(db, workspaceId, [email])).get(email)
  if (reason === 'unsubscribe') return true
  const contact = await findContact(db, workspaceId, { email })
  return contact ? !contact.subscribed && !contact.suspended : reason !== undefined
}
