/**
 * Messages that the operator deleted while they were being delivered.
 *
 * What an attempt that is under way will bring nobody knows: delivered, it would be a lie to say that it failed. Its row is
 * marked, and what the attempt brings decides (`record-outcomes.ts`). Where it comes to none, since it was handed back or a crash ended
 * it, the row is claimed once more and dropped here. Fails: as the database does.
 */
import type { Tx } from '../../db/database.js'
import type { Claimed } from './claim.js'
import { recordHappenings } from '../../messages/message-history.js'

/** Why a message that the operator deleted was not delivered. */
export const WITHDRAWN = 'deleted from the queue by the operator'

/** @param onDropped the event log has grown @returns what is to be delivered */
export async function dropWithdrawn(
  tx: Tx,
  claimed: readonly Claimed[],
  now: number,
  onDropped: () => void,
): Promise<readonly Claimed[]> {
  const withdrawn = claimed.flatMap(({ entries }) => entries.filter(({ isWithdrawn }) => isWithdrawn))
  if (withdrawn.length === 0) return claimed
  await recordHappenings(
    tx,
    withdrawn.map(({ messageId }) => ({ what: 'failed', messageId, at: now, facts: { reason: WITHDRAWN } })),
  )
  tx.onCommit(onDropped)
  return claimed.map(one => ({ ...one, entries: one.entries.filter(({ isWithdrawn }) => !isWithdrawn) }))
}
