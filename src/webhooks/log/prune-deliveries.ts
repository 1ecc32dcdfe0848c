/**
 * Retention of what was told to webhooks, step by step along the keys: what stays, because it is still being tried or was replayed, is
 * passed by.
 *
 * Run by the scheduler's jobs. Fails: as the database does.
 */
import type { Queries } from '../../db/database.js'
import type { RemoveSome } from '../../db/retention.js'
import { deleteDeliveriesBefore, deletePayloadsBefore } from './delivery-log-store.js'

/** @param before what was made, or replayed, before this moment */
export function deliveryPruning(before: number): RemoveSome {
  return walking('', (db, after, limit) => deleteDeliveriesBefore(db, before, after, limit))
}

/** @param before as above */
export function payloadPruning(before: number): RemoveSome {
  return walking(0, (db, after, limit) => deletePayloadsBefore(db, before, after, limit))
}

function walking<Place>(
  start: Place,
  remove: (
    db: Queries,
    after: Place,
    limit: number,
  ) => Promise<{ readonly removed: number; readonly next: Place | undefined }>,
): RemoveSome {
  let place = start
  return async (limit, write) => {
    const { removed, next } = await write(tx => remove(tx.db, place, limit))
    if (next !== undefined) place = next
    return { removed, hasMore: next !== undefined }
  }
}
