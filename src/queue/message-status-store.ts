/**
 * The status machine of a message, state by state.
 *
 *   sent ──────> delivered        a remote server answered 2xx after the final dot
 *   sent ──────> bounced          refused for good, or expired; also from delivered, when it comes back later
 *   sent ──────> failed           could not be built: no server was ever asked
 *   sent ──────> suppressed       the recipient was suppressed between acceptance and hand-off
 *   failed, suppressed            terminal from the start for a recipient that was skipped
 *
 * Accepted, queued and deferred all read `sent`: whoever wants more reads attempts, next attempt and last reply.
 */
import type { Queries } from '../db/database.js'
import { inLists, statement } from '../db/statement.js'
import type { Permanence } from '../mail/outcome.js'

export type MessageStatus = 'sent' | 'delivered' | 'bounced' | 'failed' | 'suppressed'

/** Why a recipient of a send was not mailed. */
export type SkipReason = 'suppressed' | 'invalid' | 'duplicate'

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
    .where('status', '=', 'sent')
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
