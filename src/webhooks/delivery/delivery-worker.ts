/**
 * Delivers webhook events: reads due deliveries, attempts them and records the results.
 *
 * A delivery stays due in the database until its result is committed, so a crash loses nothing: the attempt is repeated with the same id,
 * by which receivers detect duplicates. Starting an attempt needs no commit. Subscriptions take turns within their shares
 * (`lane.ts`). Memory: READ_AHEAD bodies per subscription with due deliveries. Never fails; after a database error it waits and
 * retries.
 */
import { describeError } from '../../core/errors.js'
import { actFor } from '../../core/holder.js'
import { BatchWriter } from '../../db/batch-writer.js'
import type { Tx } from '../../db/database.js'
import { nextTurn, pauseFor } from '../../world/time/clock.js'
import { AT_ONCE, Worker } from '../../world/time/worker.js'
import type { KnownSubscription, SubscriptionRegister } from '../subscriptions/subscription-register.js'
import type { Subscription } from '../subscriptions/subscription-store.js'
import { signingSecrets } from '../subscriptions/subscriptions.js'
import type { WebhookParts } from '../webhook-parts.js'
import { attempt, isSuccess, type AttemptResult, GONE, MAX_ATTEMPTS, waitAfter } from './attempt.js'
import { AttemptShares, SLOW_MS, Lane } from './lane.js'
import {
  finishDelivery,
  listWaiting,
  recordAttempts,
  soonestDue,
  type DueDelivery,
  type Ended,
} from './delivery-store.js'
import { recordConclusions, type Change, type Conclusion } from './record-conclusions.js'

export interface DeliveryWorkerParts extends WebhookParts {
  readonly register: SubscriptionRegister
}

/** Pause between rounds, so that attempts ending close together cause one round. */
const ROUND_MS = 4
const STARTS_AT_ONCE = 24
/** Attempts recorded in one transaction. */
const BATCH = 200
const LOOKUPS_PER_TURN = 100
/** Grace period of running attempts at shutdown; those abandoned are repeated after the next start. */
const STOP_MS = 1_000
/** Upper bound of a pause requested with Retry-After. */
const MAX_PAUSE_MS = 3_600_000

export class DeliveryWorker {
  private readonly parts: DeliveryWorkerParts
  private readonly shares = new AttemptShares()
  private readonly lanes = new Map<string, Lane>()
  private awake = new Set<Lane>()
  private readonly attempts = new Set<Promise<void>>()
  private readonly batches: BatchWriter<Conclusion, readonly Change[]>
  private readonly worker: Worker
  /** `SubscriptionRegister.changes` when subscriptions were last read. */
  private version: number | undefined
  private isOver = false

  constructor(parts: DeliveryWorkerParts) {
    this.parts = parts
    this.batches = new BatchWriter(parts, {
      events: {
        writeFailed: 'webhook attempt write failed',
        incomplete: 'webhook attempt recorded incompletely',
        abandoned: 'webhook attempt abandoned',
      },
      size: BATCH,
      record: (tx, batch) => this.record(tx, batch),
      fallbacks: [(tx, one) => this.recordWithoutDetails(tx, one), (tx, { ended }) => this.finish(tx, ended)],
      onRecorded: (batch, changes) => this.noteRecorded(batch, changes),
      // The delivery stays claimed, so this process does not attempt it again.
      onAbandoned: () => this.wake(),
      describe: ({ subscriptionId, ended }) => ({ webhook: subscriptionId, delivery: ended.deliveryId }),
    })
    this.worker = new Worker({
      ...parts,
      failure: 'webhook queue read failed',
      runPiece: stopping => this.round(stopping),
      version: () => parts.register.changes,
    })
  }

  /** Deliveries of these subscriptions became due. Cheap. */
  noteDue(subscriptionIds: readonly string[]): void {
    const now = this.parts.clock.now()
    for (const id of subscriptionIds) {
      const lane = this.laneOf(id)
      if (!lane) continue
      lane.noteDue(now)
      this.awake.add(lane)
    }
    this.wake()
  }

  /** This process created, changed or enabled a subscription. */
  noteChanged(subscription: KnownSubscription): void {
    this.parts.register.note(subscription, subscription.isPermitted)
    this.lanes.get(subscription.id)?.moveTo(hostOf(subscription))
    this.noteDue([subscription.id])
  }

  noteRemoved(id: string): void {
    this.parts.register.forget(id)
    this.drop(id)
  }

  async run(stopping: AbortSignal): Promise<void> {
    this.isOver = false
    this.version = undefined
    await this.worker.run(stopping)
    await this.close()
  }

  /** Another process may have changed subscriptions or replayed deliveries; a workspace may have been removed or restored. */
  private async catchUp(): Promise<void> {
    const { register, database, clock } = this.parts
    const version = register.changes
    if (version === this.version) return
    await register.refresh()
    for (const id of [...this.lanes.keys()]) if (!register.find(id)) this.drop(id)
    let lookups = 0
    for (const { id } of register.all()) {
      if (++lookups % LOOKUPS_PER_TURN === 0) await nextTurn()
      const dueAt = await soonestDue(database.reader, id)
      if (dueAt === undefined) continue
      const lane = this.laneOf(id)
      lane?.forgetRead(clock.now())
      lane?.noteDue(dueAt)
    }
    this.version = version
  }

  private async round(stopping: AbortSignal): Promise<number> {
    await this.catchUp()
    const now = this.parts.clock.now()
    for (const lane of this.lanes.values()) if ((lane.wakesAt ?? Infinity) <= now) this.awake.add(lane)
    const read = await this.readDue(now)
    const started = stopping.aborted ? 0 : await this.startAttempts(now)
    for (const lane of this.awake) if (!lane.hasReady && !lane.wantsToRead(now)) this.awake.delete(lane)
    this.worker.resetBackoff()
    await pauseFor(ROUND_MS)
    return read + started > 0 ? AT_ONCE : this.nextDueAt(now)
  }

  private async readDue(now: number): Promise<number> {
    let read = 0
    for (const lane of this.awake) {
      if (!lane.wantsToRead(now) || !this.shares.hasRoom(lane)) continue
      const limit = lane.readLimit
      const before = lane.beginRead()
      try {
        lane.noteRead(
          before,
          await listWaiting(this.parts.database.reader, lane.subscriptionId, limit),
          limit,
          now,
        )
      } catch (error) {
        lane.noteDue(now)
        throw error
      }
      read += 1
    }
    return read
  }

  /** Starts one attempt per subscription in each round, until no subscription has both a due delivery and a free share. */
  private async startAttempts(now: number): Promise<number> {
    let started = 0
    for (let inRound = 1; inRound > 0;) {
      inRound = 0
      for (const lane of [...this.awake]) {
        if (!lane.hasReady || lane.restsUntil > now || !this.shares.hasRoom(lane)) continue
        const due = lane.take()
        if (!due) continue
        this.start(lane, due)
        inRound += 1
        started += 1
        this.awake.delete(lane)
        this.awake.add(lane)
        if (started % STARTS_AT_ONCE === 0) await nextTurn()
      }
    }
    return started
  }

  private start(lane: Lane, due: DueDelivery): void {
    const { clock, register } = this.parts
    const subscription = register.find(lane.subscriptionId)
    if (!subscription) {
      lane.end(due.id)
      return
    }
    const place = this.shares.take(lane)
    const slow = clock.after(SLOW_MS, () => {
      place.slow()
      this.wake()
    })
    const holder = { owner: subscription.workspaceId }
    const trying = actFor(holder, () => this.attempt(subscription, due)).then(result => {
      slow.cancel()
      place.release()
      this.attempts.delete(trying)
      this.conclude(lane, due, result)
    })
    this.attempts.add(trying)
  }

  private async attempt(subscription: KnownSubscription, due: DueDelivery): Promise<AttemptResult> {
    const { clock, outgoingCalls } = this.parts
    const { id: subscriptionId, targetUrl, isPermitted } = subscription
    const startedAt = clock.now()
    try {
      const secrets = signingSecrets(this.parts, subscription, startedAt)
      const { http } = outgoingCalls(isPermitted)
      const { id: deliveryId, event, body } = due
      return await attempt({ http, clock }, { deliveryId, subscriptionId, event, targetUrl, body, secrets })
    } catch (error) {
      // The secret cannot be opened: the operator's fault, not the receiver's.
      return {
        startedAt,
        durationMs: 0,
        statusCode: 0,
        error: describeError(error),
        response: null,
        userAgent: null,
      }
    }
  }

  private conclude(lane: Lane, due: DueDelivery, result: AttemptResult): void {
    if (this.isOver) return
    const { clock, random } = this.parts
    const made = due.attempts - due.attemptsBefore + 1
    const hasSucceeded = isSuccess(result)
    lane.standing = hasSucceeded ? 'steady' : 'failing'
    const { retryAfterMs = 0 } = result
    const waitMs = hasSucceeded ? undefined : waitAfter(made, random.fraction(), retryAfterMs)
    if (!hasSucceeded && retryAfterMs > 0)
      lane.restsUntil = clock.now() + Math.min(retryAfterMs, MAX_PAUSE_MS)
    const then = hasSucceeded
      ? 'succeeded'
      : waitMs === undefined || made >= MAX_ATTEMPTS || result.statusCode === GONE
        ? 'failed'
        : { nextAttemptAt: clock.now() + waitMs }
    this.batches.add({
      subscriptionId: lane.subscriptionId,
      made,
      ended: { deliveryId: due.id, number: due.attempts + 1, result, then },
    })
    this.wake()
  }

  private record(tx: Tx, batch: readonly Conclusion[]): Promise<Change[]> {
    tx.changed('deliveries')
    const { register, clock } = this.parts
    return recordConclusions(tx, batch, id => register.find(id), clock.now())
  }

  /** Fallback when a result cannot be recorded: drops the response and leaves the subscription's state unchanged. */
  private async recordWithoutDetails(tx: Tx, { ended }: Conclusion): Promise<readonly Change[]> {
    const result = { ...ended.result, error: 'the answer could not be recorded', response: null }
    await recordAttempts(tx.db, [{ ...ended, result }], this.parts.clock.now())
    return []
  }

  private async finish(tx: Tx, ended: Ended): Promise<readonly Change[]> {
    const status = ended.then === 'succeeded' ? 'succeeded' : 'failed'
    await finishDelivery(tx.db, ended, status, this.parts.clock.now())
    return []
  }

  private noteRecorded(batch: readonly Conclusion[], changes: readonly Change[]): void {
    const { register, log } = this.parts
    for (const { subscriptionId, ended } of batch) {
      const lane = this.lanes.get(subscriptionId)
      lane?.end(ended.deliveryId)
      if (typeof ended.then === 'object') lane?.noteDue(ended.then.nextAttemptAt)
    }
    for (const { subscriptionId, failingSince, disabled } of changes) {
      register.noteFailingSince(subscriptionId, failingSince)
      if (disabled === undefined) continue
      log.warn('webhook disabled', { webhook: subscriptionId, reason: disabled })
      this.noteRemoved(subscriptionId)
    }
    this.wake()
  }

  private laneOf(id: string): Lane | undefined {
    const known = this.lanes.get(id)
    if (known) return known
    const subscription = this.parts.register.find(id)
    if (!subscription) return undefined
    const standing = subscription.failingSince === null ? 'unknown' : 'failing'
    const lane = new Lane(id, subscription.workspaceId, hostOf(subscription), standing)
    this.lanes.set(id, lane)
    return lane
  }

  private drop(id: string): void {
    const lane = this.lanes.get(id)
    if (!lane) return
    this.lanes.delete(id)
    this.awake.delete(lane)
  }

  private wake(): void {
    this.worker.wake()
  }

  /**
   * Deliveries that were due at the beginning of the round wait for a free share and are woken when an attempt ends. Those that fell due during it
   * are not, so the next round begins at once.
   */
  private nextDueAt(roundAt: number): number {
    let next = Infinity
    for (const { wakesAt = 0 } of this.lanes.values()) if (wakesAt > roundAt) next = Math.min(next, wakesAt)
    return next
  }

  private async close(): Promise<void> {
    const ended = Promise.all(this.attempts).then(() => this.batches.idle())
    await Promise.race([ended, pauseFor(STOP_MS)])
    this.isOver = true
    await Promise.race([this.batches.idle(), pauseFor(STOP_MS)])
  }
}

function hostOf({ targetUrl }: Subscription): string {
  return new URL(targetUrl).host
}
