/** Retention of webhook deliveries and bodies, walked in key order. Pending and recently replayed ones are kept. */
import type { Queries } from '../../db/database.js'
import type { RemoveSome } from '../../db/retention.js'
import { deleteDeliveriesBefore, deletePayloadsBefore } from './delivery-log-store.js'

/** @param before ms since epoch UTC; deliveries created or replayed since are kept */
export function deliveryPruning(before: number): RemoveSome {
  return walking('', (db, after, limit) => deleteDeliveriesBefore(db, before, after, limit))
}

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
