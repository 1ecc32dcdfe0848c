/**
 * Replays webhook deliveries: a single one, or all failed ones of a subscription since a given time.
 *
 * Called by the routes and the command line. A replay keeps the delivery's id and gets a fresh set of attempts.
 * Fails: AppError not_found; conflict for a delivery that is still pending or a webhook that is disabled.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Database, Queries } from '../../db/database.js'
import type { Subscription } from '../subscriptions/subscription-store.js'
import { findAnySubscription } from '../subscriptions/subscription-store.js'
import { findDelivery, replayDelivery, replayFailed, type LoggedDelivery } from './delivery-log-store.js'

const AT_ONCE = 200

/** @returns the delivery and its subscription @throws AppError not_found */
export async function requireDelivery(
  db: Queries,
  id: string,
): Promise<{ readonly delivery: LoggedDelivery; readonly subscription: Subscription }> {
  const delivery = isUuid(id) ? await findDelivery(db, id.toLowerCase()) : undefined
  const subscription = delivery && (await findAnySubscription(db, delivery.subscriptionId))
  if (!subscription) throw new AppError('not_found', 'no such delivery')
  return { delivery, subscription }
}

export async function replayOne(
  db: Queries,
  { delivery, subscription }: { readonly delivery: LoggedDelivery; readonly subscription: Subscription },
  now: number,
): Promise<void> {
  assertActive(subscription)
  if (await replayDelivery(db, delivery.id, now)) return
  throw new AppError(
    'conflict',
    'the delivery is still pending: it can be replayed once it succeeds or fails',
  )
}

/**
 * @param since ms since epoch UTC
 * @returns how many were replayed; if this equals `most`, more may remain
 * @throws AppError conflict
 */
export async function replayAllFailed(
  database: Database,
  subscription: Subscription,
  { since, most, now }: { readonly since: number; readonly most: number; readonly now: number },
): Promise<number> {
  assertActive(subscription)
  const { id: subscriptionId } = subscription
  let replayed = 0
  let after = ''
  while (replayed < most) {
    const limit = Math.min(AT_ONCE, most - replayed)
    const ids = await database.write(
      tx => replayFailed(tx.db, { subscriptionId, since, after }, now, limit),
      { isLong: true },
    )
    replayed += ids.length
    after = ids.at(-1) ?? after
    if (ids.length < limit) break
  }
  return replayed
}

function assertActive({ disabledAt }: Subscription): void {
  if (disabledAt !== null) throw new AppError('conflict', 'the webhook is disabled: enable it first')
}
