/**
 * The status machine of a message, state by state.
 *
 *   scheduled ─> sent             its time has come: written in the transaction that claims it for its first attempt
 *   scheduled ─> cancelled        called back before that
 *   scheduled ─> failed           the operator took it out of the queue
 *   sent ──────> delivered        a remote server answered 2xx after the final dot
 *   delivered ─> opened           the first opening that no machine made
 *   delivered ─> clicked          the first click that no machine made; also from opened
 *   sent ──────> bounced          refused for good, or expired; also from delivered, when it comes back later
 *   sent ──────> failed           could not be built: no server was ever asked
 *   sent ──────> suppressed       the recipient was suppressed between acceptance and hand-off
 *   failed, suppressed            terminal from the start for a recipient that was skipped
 *   cancelled                     terminal
 *
 * An opening or click of a message that reads `sent` (its delivery was not confirmed yet) moves it as well. Accepted, queued and deferred all read `sent`: whoever wants more reads attempts, next attempt and last reply.
 */
import type { Queries } from '../db/database.js'
import { inLists, statement } from '../db/statement.js'
import type { Permanence } from '../mail/outcome.js'

export type MessageStatus =
  | 'scheduled'
  | 'cancelled'
  | 'sent'
  | 'delivered'
  | 'opened'
  | 'clicked'
  | 'bounced'
  | 'failed'
  | 'suppressed'

/** Why a recipient of a send was not mailed. */
export type SkipReason = 'suppressed' | 'invalid' | 'duplicate'

/** Of messages that are claimed for their first attempt; those that were not scheduled stay as they are. */
export async function markStarted(db: Queries, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ status: 'sent', sent_at: at })
    .where('id', 'in', ids)
    .where('status', '=', 'scheduled')
    .execute()
}

export async function markCancelled(db: Queries, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ status: 'cancelled' })
    .where('id', 'in', ids)
    .where('status', '=', 'scheduled')
    .execute()
}

/** The first opening counts; one that comes after a click moves only its own moment. */
export async function markOpened(db: Queries, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ opened_at: at })
    .where('id', 'in', ids)
    .where('opened_at', 'is', null)
    .execute()
  await db
    .updateTable('messages')
    .set({ status: 'opened' })
    .where('id', 'in', ids)
    .where('status', 'in', ['sent', 'delivered'])
    .execute()
}

/** Who clicks has opened it, whether its pictures were loaded or not. */
export async function markClicked(db: Queries, ids: readonly string[], at: number): Promise<void> {
  await markOpened(db, ids, at)
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ clicked_at: at })
    .where('id', 'in', ids)
    .where('clicked_at', 'is', null)
    .execute()
  await db
    .updateTable('messages')
    .set({ status: 'clicked' })
    .where('id', 'in', ids)
    .where('status', '=', 'opened')
    .execute()
}

const setDelivered = statement((db, { ids, at }: { ids: readonly string[]; at: number }) =>
  db
    .updateTable('messages')
    .set({ status: 'delivered', delivered_at: at })
    .where('id', 'in', ids)
    .where('status', '=', 'sent'),
)

export async function markDelivered(db: Queries, ids: readonly string[], at: number): Promise<void> {
  for (const list of inLists(ids)) await setDelivered(db, { ids: list, at })
}

export async function markBounced(
  db: Queries,
  ids: readonly string[],
  bounceType: Permanence,
  at: number,
): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ status: 'bounced', bounced_at: at, bounce_type: bounceType })
    .where('id', 'in', ids)
    .where('status', 'in', ['sent', 'delivered'])
    .execute()
}

/** A complaint leaves the status as it is. */
export async function markComplained(db: Queries, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ complained_at: at })
    .where('id', 'in', ids)
    .where('complained_at', 'is', null)
    .execute()
}

export async function markFailed(db: Queries, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ status: 'failed' })
    .where('id', 'in', ids)
    .where('status', 'in', ['scheduled', 'sent'])
    .execute()
}

export async function markSuppressed(db: Queries, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ status: 'suppressed', reason: 'suppressed' })
    .where('id', 'in', ids)
    .where('status', '=', 'sent')
    .execute()
}
