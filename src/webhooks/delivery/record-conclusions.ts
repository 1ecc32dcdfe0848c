/**
 * Records finished attempts: updates their deliveries and their subscriptions' health, and disables dead subscriptions.
 *
 *   success                                    failing_since is cleared
 *   failure                                    failing_since is set if it was not
 *   failure, none but failures for 5 days,     disabled (`failing`); early attempts do not count, so one short outage long ago and
 *     not among a delivery's first attempts    one now do not add up to five days
 *   410                                        disabled (`gone`)
 *
 * Called by the delivery worker inside its transaction. Pending deliveries of a disabled subscription are ended by
 * `prune-deliveries.ts`.
 */
import { SYSTEM } from '../../core/actor.js'
import type { Tx } from '../../db/database.js'
import { recordActivity } from '../../events/activity-store.js'
import {
  disableSubscription,
  updateFailingSince,
  type DisabledReason,
  type Subscription,
} from '../subscriptions/subscription-store.js'
import { isSuccess, FAILING_FOR_MS, GONE } from './attempt.js'
import { recordAttempts, type Ended } from './delivery-store.js'

export interface Conclusion {
  readonly subscriptionId: string
  /** Attempts of the delivery since its last replay, including this one. */
  readonly made: number
  readonly ended: Ended
}

export interface Change {
  readonly subscriptionId: string
  readonly failingSince: number | null
  readonly disabled?: DisabledReason
}

/** A webhook is disabled only after an attempt at least this late in its schedule: minutes, not seconds, after the event. */
const FIRST_COUNTED_ATTEMPT = 3

/** @param find active subscriptions only @returns the subscriptions whose health changed */
export async function recordConclusions(
  tx: Tx,
  batch: readonly Conclusion[],
  find: (id: string) => Subscription | undefined,
  now: number,
): Promise<Change[]> {
  await recordAttempts(
    tx.db,
    batch.map(({ ended }) => ended),
    now,
  )
  const changes: Change[] = []
  for (const [id, group] of bySubscription(batch)) {
    const subscription = find(id)
    if (!subscription) continue
    const change = changeOf(subscription, group, now)
    if (change.failingSince !== subscription.failingSince)
      await updateFailingSince(tx.db, id, change.failingSince)
    if (change.disabled !== undefined) await disable(tx, subscription, change.disabled, now)
    if (change.failingSince !== subscription.failingSince || change.disabled !== undefined)
      changes.push(change)
  }
  return changes
}

function changeOf({ id, failingSince }: Subscription, group: readonly Conclusion[], now: number): Change {
  const isGone = group.some(({ ended }) => ended.result.statusCode === GONE)
  if (isGone) return { subscriptionId: id, failingSince: failingSince ?? now, disabled: 'gone' }
  if (group.some(({ ended }) => isSuccess(ended.result))) return { subscriptionId: id, failingSince: null }
  const since = failingSince ?? Math.min(...group.map(({ ended }) => ended.result.startedAt))
  const isHopeless = now - since >= FAILING_FOR_MS && group.some(({ made }) => made >= FIRST_COUNTED_ATTEMPT)
  return { subscriptionId: id, failingSince: since, ...(isHopeless ? { disabled: 'failing' as const } : {}) }
}

async function disable(
  tx: Tx,
  { id, workspaceId, event, targetUrl }: Subscription,
  reason: DisabledReason,
  at: number,
): Promise<void> {
  if (!(await disableSubscription(tx.db, id, reason, at))) return
  await recordActivity(tx, { workspaceId, actor: SYSTEM }, at, {
    action: 'webhook.disabled',
    subject: targetUrl,
    details: { id, event, reason },
  })
}

function bySubscription(batch: readonly Conclusion[]): Map<string, Conclusion[]> {
  const groups = new Map<string, Conclusion[]>()
  for (const one of batch) {
    const group = groups.get(one.subscriptionId)
    if (group) group.push(one)
    else groups.set(one.subscriptionId, [one])
  }
  return groups
}
