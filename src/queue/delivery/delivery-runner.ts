/**
 * The delivery runner: delivers ready messages as their sites have free slots, and records the outcomes.
 *
 * Used by the queue manager. Knows no SMTP. An agent that breaks its promise never to reject defers the message.
 *
 *   ready ──slot──> active ──outcome──> connection and memory freed ──commit──> done
 *     │                ├── overdue while others wait for its connection: aborted and deferred
 *     │                └── its campaign is held: aborted and released, unless the final dot was sent
 *     └── its site backs off, at once or while it waits, its campaign is held, or the server stops: released
 *
 * RFC 5321 §4.5.3.2 gives a server minutes for each reply, and it has them while nobody waits. When other mail waits
 * for the connection, a site that has not answered lately gets seconds, doubled after each aborted delivery
 * (`site-pace.ts`), so that a merely slow one gets through eventually. The agent never aborts a delivery past the final
 * dot.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Services } from '../../db/services.js'
import type { Deferred, Outcome } from '../../mail/outcome.js'
import type { ReadyMessage } from '../claiming/claimer.js'
import type { ClockSteps } from '../clock-changes.js'
import type { Standing } from '../pacing/connection-shares.js'
import type { DeliveryAgent, DeliveryJob } from '../delivery-agent.js'
import type { JobLoader } from '../claiming/job-loader.js'
import type { Lane } from '../lane.js'
import { paceSignal, FIRST_PATIENCE_MS } from '../pacing/site-pace.js'
import { ReadyQueue } from './ready-queue.js'
import type { Schedule } from '../pacing/schedule.js'
import type { OutcomeWriter } from './outcome-writer.js'
import type { Site, Turn } from '../pacing/site.js'

export interface DeliveryRunnerParts extends Pick<Services, 'clock' | 'random' | 'log'> {
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly schedule: Schedule
  readonly outcomes: OutcomeWriter
  readonly steps: ClockSteps
  readonly retry: BackoffPolicy
  /** Releases messages that were ready but will not start now. */
  readonly releaseClaims: (ready: readonly ReadyMessage[]) => Promise<void>
  /** Called when a slot was freed or a message falls due again. */
  readonly onChange: () => void
  /** Called after outcomes and their events were committed. */
  readonly onSettled: () => void
}

interface Delivery extends ActiveDelivery {
  readonly ready: ReadyMessage
}

export class DeliveryRunner {
  private readonly parts: DeliveryRunnerParts
  private readonly readyQueue = new ReadyQueue<ReadyMessage>()
  private readonly inProgress = new Set<Delivery>()
  /** Started or ready, without an outcome. */
  private active = 0
  /** Claimed messages that were given to this runner and whose end is not committed, yet or for good. */
  private readonly inHand = new Set<string>()
  /** Writes that `idle` waits for. */
  private readonly pending = new Set<Promise<void>>()
  private isAborting = false

  constructor(parts: DeliveryRunnerParts) {
    this.parts = parts
  }

  /** Deliveries started or ready to start that have no outcome yet. */
  get activeCount(): number {
    return this.active
  }

  /** Started deliveries whose outcome is not committed yet, and releases in progress. */
  get unsettledCount(): number {
    return this.pending.size
  }

  get inProgressIds(): string[] {
    return [...this.inProgress].map(({ ready }) => ready.job.messageId)
  }

  /** Whether the message's claim ends here. */
  isInHand(messageId: string): boolean {
    return this.inHand.has(messageId)
  }

  /** @returns what cannot start now, because its site backs off since it was claimed: to be released */
  start(ready: readonly ReadyMessage[]): ReadyMessage[] {
    return ready.filter(one => {
      const admission = this.readyQueue.admit(one)
      if (admission === 'refused') return true
      this.active += 1
      this.inHand.add(one.job.messageId)
      if (admission === 'starts') this.begin(one)
      return false
    })
  }

  /** Aborts overdue deliveries of these standings to free their connections. @param most at most this many */
  abortOverdue(standings: readonly Standing[], most: number): void {
    const now = this.parts.clock.monotonic()
    for (const delivery of findOverdue(this.inProgress, standings, now).slice(0, most))
      this.abortDelivery(delivery)
  }

  /** Stops deliveries of held lanes: ready ones are released, those before the final dot are aborted and released. */
  holdLanes(isHeld: (lane: Lane) => boolean): void {
    this.track(this.release(this.readyQueue.takeWhere(({ turn }) => isHeld(turn.lane))))
    for (const delivery of this.inProgress)
      if (delivery.state === 'active' && isHeld(delivery.turn.lane)) {
        delivery.state = 'held'
        delivery.controller.abort()
      }
  }

  async releaseReady(): Promise<void> {
    await this.release(this.readyQueue.takeAll())
  }

  /** Aborts every delivery before the final dot, including those that start later. */
  abort(): void {
    this.isAborting = true
    for (const { controller } of this.inProgress) controller.abort()
  }

  async idle(): Promise<void> {
    while (this.pending.size > 0) await Promise.all(this.pending)
  }

  private begin(ready: ReadyMessage): void {
    const delivery: Delivery = {
      ready,
      turn: ready.turn,
      octets: ready.octets,
      startedAt: this.parts.clock.monotonic(),
      controller: new AbortController(),
      state: 'active',
    }
    this.inProgress.add(delivery)
    if (this.isAborting) delivery.controller.abort()
    this.track(this.deliver(delivery))
  }

  private track(work: Promise<void>): void {
    const kept: Promise<void> = work.finally(() => this.pending.delete(kept))
    this.pending.add(kept)
  }

  private abortDelivery(delivery: Delivery): void {
    // A delivery past the final dot does not stop now; detaching keeps it from blocking others.
    delivery.state = this.parts.schedule.detach(delivery.turn) ? 'detached' : 'aborted'
    delivery.controller.abort()
  }

  /**
   * Frees the connection as soon as the outcome is known, before it is committed: the next message of the site is
   * claimed in the same commit that records this outcome.
   */
  private async deliver(delivery: Delivery): Promise<void> {
    const { clock, schedule, outcomes, steps, onChange, onSettled } = this.parts
    const { job, turn } = delivery.ready
    const startedAt = clock.now()
    const outcome = await this.attempt(delivery)
    if (delivery.state === 'held' && isAborted(outcome)) return this.releaseHeld(delivery)
    delivery.ready.freeMemory()
    const durationMs = clock.monotonic() - delivery.startedAt
    const finishedAt = clock.now()
    const clockAheadMs = steps.since(job.acceptedAt)
    const retryAt = this.retryAt(job, outcome, finishedAt)
    this.inProgress.delete(delivery)
    this.active -= 1
    const recorded = outcomes.add({ job, startedAt, finishedAt, outcome, retryAt, clockAheadMs })
    schedule.deliveryEnded(turn, paceSignal(outcome), durationMs, delivery.state === 'detached')
    for (const next of this.readyQueue.finish(turn.site)) this.begin(next)
    this.releaseFailedSite(delivery)
    onChange()
    const { isRecorded, nextAttemptAt } = await recorded
    if (isRecorded) this.inHand.delete(job.messageId)
    schedule.settled(turn, nextAttemptAt)
    onSettled()
    onChange()
  }

  private async releaseHeld(delivery: Delivery): Promise<void> {
    const { ready } = delivery
    this.inProgress.delete(delivery)
    for (const next of this.readyQueue.finish(ready.turn.site)) this.begin(next)
    await this.release([ready])
    this.parts.onChange()
  }

  /** Releases what waits for a site that backs off; if the site is unreachable, also aborts what hangs there. */
  private releaseFailedSite({ turn: { site } }: Delivery): void {
    this.track(this.release(this.readyQueue.takeIfBackingOff(site)))
    if (!site.pace.isUnreachable) return
    for (const other of findHanging(this.inProgress, site, this.parts.clock.monotonic()))
      this.abortDelivery(other)
  }

  private async release(ready: readonly ReadyMessage[]): Promise<void> {
    if (ready.length === 0) return
    this.active -= ready.length
    await this.parts.releaseClaims(ready)
    for (const { job } of ready) this.inHand.delete(job.messageId)
  }

  private async attempt(delivery: Delivery): Promise<Outcome> {
    const { agent, jobs, log } = this.parts
    const { job, fault } = delivery.ready
    if (fault !== undefined) return notReady(fault)
    try {
      const outcome = await agent.deliver(await jobs.complete(job), delivery.controller.signal)
      return this.isAborting ? outcome : blameSlowSite(outcome, delivery)
    } catch (error) {
      log.error('delivery agent failed', { messageId: job.messageId, error: describeError(error) })
      return agentFailure
    }
  }

  /**
   * Mail aborted by our own shutdown is due immediately. A delay requested by the server is capped at the maximum retry
   * delay.
   */
  private retryAt(job: DeliveryJob, outcome: Outcome, now: number): number {
    if (isAborted(outcome)) return now
    const { retry } = this.parts
    const asked = outcome.kind === 'deferred' ? (outcome.retryAfterMs ?? 0) : 0
    const planned = retryDelayMs(retry, job.attempt, this.parts.random.fraction())
    return now + Math.max(planned, Math.min(asked, retry.maxMs))
  }
}

/** Aborted before any server could have accepted the message. */
function isAborted(outcome: Outcome): outcome is Deferred & { readonly subtype: 'shutdown' } {
  return outcome.kind === 'deferred' && outcome.subtype === 'shutdown'
}

/** A delivery aborted for being slow is the site's failure, not our shutdown. */
function blameSlowSite(outcome: Outcome, { state }: Delivery): Outcome {
  if (state === 'active' || state === 'held' || !isAborted(outcome)) return outcome
  return {
    ...outcome,
    cause: 'transient',
    scope: 'domain',
    subtype: 'too_slow',
    summary: 'the server did not answer in time, and other mail was waiting for the connection',
  }
}

const agentFailure: Deferred = {
  kind: 'deferred',
  cause: 'transient',
  scope: 'source',
  permanence: 'transient',
  subtype: 'internal_error',
  summary: 'the delivery agent failed; see the log',
  tried: [],
}

/** The operator can fix it, so the message waits; the site's pace is not affected. */
function notReady(fault: string): Outcome {
  return { ...agentFailure, cause: 'config', subtype: 'signing_key', summary: fault }
}

export interface ActiveDelivery {
  readonly turn: Turn
  readonly octets: number
  /** Monotonic, ms. */
  readonly startedAt: number
  readonly controller: AbortController
  /**
   * `detached`: aborted, and no longer counted in its share of the connections. `held`: aborted because its campaign is
   * held.
   */
  state: 'active' | 'aborted' | 'detached' | 'held'
}

/** Slowest expected line speed for large messages, octets per ms. */
const SLOW_LINE = 32

/** Active deliveries of these standings that have used up their time. @returns oldest first */
export function findOverdue<T extends ActiveDelivery>(
  begun: Iterable<T>,
  standings: readonly Standing[],
  now: number,
): T[] {
  const found: T[] = []
  for (const delivery of begun)
    if (
      standings.includes(delivery.turn.standing) &&
      isOver(delivery, delivery.turn.site.pace.patienceMs, now)
    )
      found.push(delivery)
  return found.sort((one, other) => one.startedAt - other.startedAt)
}

/** Deliveries hanging at an unreachable site. One that has just started may be the one that succeeds. */
export function findHanging<T extends ActiveDelivery>(begun: Iterable<T>, site: Site, now: number): T[] {
  const found: T[] = []
  for (const delivery of begun)
    if (delivery.turn.site === site && isOver(delivery, FIRST_PATIENCE_MS, now)) found.push(delivery)
  return found
}

function isOver({ state, startedAt, octets }: ActiveDelivery, patienceMs: number, now: number): boolean {
  return state === 'active' && now - startedAt >= patienceMs + octets / SLOW_LINE
}
