/**
 * Unsubscribes a recipient: the common path of links, pages, unsubscribe mail and opt-out reports.
 *
 * Runs in the caller's transaction; the caller wakes the event consumers afterwards. Suppresses the address for
 * marketing and opts out the contact at once, also in a removed workspace, which may be restored. Transactional mail is still sent. Needs no message row, because links are
 * followed years later. Repeated requests change nothing and append no event. Standards: RFC 8058, RFC 2369 §3.2.
 */
import { findFormerSender } from '../accounts/workspace-store.js'
import { findContact } from '../audience/contacts/contacts.js'
import { optOut } from '../audience/contacts/follow-suppressions.js'
import type { Queries, Tx } from '../db/database.js'
import { findReasons, insertSuppression } from '../deliverability/suppressions/suppression-store.js'
import type { EmailUnsubscribed } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { normalizedAddress } from '../mail/address.js'
import { recordTransitions } from './message-history.js'

export interface UnsubscribeRequest {
  /** The sandbox's own workspace id for sandbox mail. */
  readonly workspaceId: string
  /** Need not be normalized. */
  readonly recipient: string
  /** May have been deleted. */
  readonly messageId: string
  readonly source: EmailUnsubscribed['payload']['source']
  readonly at: number
}

/** @returns whether it changed anything */
export async function unsubscribeRecipient(tx: Tx, wish: UnsubscribeRequest): Promise<boolean> {
  const { workspaceId, recipient, messageId, source, at } = wish
  const email = normalizedAddress(recipient)
  const { isSandbox = false } = (await findFormerSender(tx.db, workspaceId, at)) ?? {}
  const suppression = { workspaceId, email, reason: 'unsubscribe', scope: 'marketing' } as const
  // Simulated outcomes can be repeated, so a sandbox suppresses only by hand.
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

/** If the address is suppressed for another reason, the contact shows whether the opt-out was recorded. */
async function isKnown(db: Queries, workspaceId: string, email: string): Promise<boolean> {
  const reason = (await findReasons(db, workspaceId, [email])).get(email)
  if (reason === 'unsubscribe') return true
  const contact = await findContact(db, workspaceId, { email })
  return contact ? !contact.subscribed && !contact.suspended : reason !== undefined
}
