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
import type { Permanence } from '../mail/outcome.js'

export type MessageStatus = 'sent' | 'delivered' | 'bounced' | 'failed' | 'suppressed'

/** Why a recipient of a send was not mailed. */
export type SkipReason = 'suppressed' | 'invalid' | 'duplicate'

export async function markDelivered(db: Queries, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('messages')
    .set({ status: 'delivered', delivered_at: at })
    .where('id', 'in', ids)
    .where('status', '=', 'sent')
    .execute()
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
