/**
 * Clears pending deliveries of ended subscriptions: a disabled one's become `failed` and can be replayed later; a deleted one's are
 * deleted, and then the subscription itself.
 *
 * Runs as a job every few minutes, in small steps.
 */
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import { deleteDeliveriesOf } from '../log/delivery-log-store.js'
import { listEnded, removeSubscription } from '../subscriptions/subscription-store.js'
import { failWaiting } from './delivery-store.js'

const AT_ONCE = 200
const SUBSCRIPTIONS_AT_ONCE = 500

export async function clearDeliveries(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
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
    after = page.at(-1)?.id ?? ''
  }
}
