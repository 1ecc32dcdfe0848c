/** Deletes webhook deliveries: of ended subscriptions, and by retention. Pending and recently replayed ones are kept. */
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { deleteDeliveriesOf, deleteDeliveriesBefore, deletePayloadsBefore } from './delivery-log-store.js'
import { listEnded, removeSubscription } from '../subscriptions/subscription-store.js'
import { failWaiting } from '../delivery/delivery-store.js'
import type { RemoveSome } from '../../db/retention.js'

const AT_ONCE = 200
const SUBSCRIPTIONS_AT_ONCE = 500

/**
 * Clears pending deliveries of ended subscriptions: a disabled one's become `failed` and can be replayed later; a deleted one's are
 * deleted, and then the subscription itself.
 */
export async function clearDeliveries(
  { database, clock }: Pick<Services, 'database' | 'clock'>,
  stopping: AbortSignal,
): Promise<void> {
  let after = ''
  for (;;) {
    const page = await listEnded(database.reader, after, SUBSCRIPTIONS_AT_ONCE)
    for (const { id, isDeleted } of page) {
      const step = (): Promise<number> =>
        database.write(
          tx =>
            isDeleted ? deleteDeliveriesOf(tx.db, id, AT_ONCE) : failWaiting(tx.db, id, clock.now(), AT_ONCE),
          { isLong: true },
        )
      for (let cleared = AT_ONCE; cleared === AT_ONCE && !stopping.aborted;) cleared = await step()
      if (stopping.aborted) return
      if (isDeleted) await database.write(tx => removeSubscription(tx.db, id), { isLong: true })
    }
    if (page.length < SUBSCRIPTIONS_AT_ONCE) return
    after = must(page.at(-1), 'the last subscription').id
  }
}

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
