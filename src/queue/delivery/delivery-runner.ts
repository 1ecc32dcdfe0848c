/**
 * The delivery runner: has ready messages delivered, each when its site has a free place, and their outcomes written down.
 *
 * Used by the queue manager. A message is under way from `takeIn` until its outcome is on disk. Knows no SMTP (that is the
 * delivery agent's). Fails: an agent that breaks its promise never to reject defers the message.
 *
 *   ready ──place──> begun ──outcome──> its connection and memory are free ──on disk──> over
 *     │                 ├── others wait for its connection, it has had its time: broken off, and deferred
 *     │                 └── its campaign is held: broken off, and handed back, unless it is past the final dot
 *     └── its site rests, its campaign is held, or the server stops: handed back
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Deferred, Outcome } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { Random } from '../../world/random.js'
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

export interface DeliveryRunnerParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly schedule: Schedule
  readonly outcomes: OutcomeWriter
  readonly steps: ClockSteps
  readonly retry: BackoffPolicy
  /** These were ready and shall not begin now. */
  readonly releaseClaims: (ready: readonly ReadyMessage[]) => Promise<void>
  /** A connection is free, or something falls due again. */
  readonly onChange: () => void
  /** Outcomes have been committed; the event log has grown. */
  readonly onSettled: () => void
}

interface Delivery extends ActiveDelivery {
  readonly ready: ReadyMessage
}

export class DeliveryRunner {
  private readonly parts: DeliveryRunnerParts
  private readonly readyQueue = new ReadyQueue<ReadyMessage>()
  private readonly inProgress = new Set<Delivery>()
  /** Begun or ready to begin, without an outcome. */
  private active = 0
  /** What has to be on disk before the end. */
  private readonly pending = new Set<Promise<void>>()
  private isAborting = false

  constructor(parts: DeliveryRunnerParts) {
    this.parts = parts
  }

  /** Deliveries begun, or ready to begin, whose outcome has not come. */
  get activeCount(): number {
    return this.active
  }

  /** Those, and the ones whose outcome is not on disk yet. */
  get unsettledCount(): number {
    return this.pending.size
  }

  /** Messages that have been handed to the agent and have no outcome. */
  get inProgressIds(): string[] {
    return [...this.inProgress].map(({ ready }) => ready.job.messageId)
  }

  start(ready: ReadyMessage): void {
    this.active += 1
    if (this.readyQueue.tryStart(ready)) this.begin(ready)
  }

  /** Breaks off what has had its time, of these shares, so that others may begin. @param most how many at most */
  abortOverdue(standings: readonly Standing[], most: number): void {
    const now = this.parts.clock.monotonic()
    for (const delivery of findOverdue(this.inProgress, standings, now).slice(0, most))
      this.abortDelivery(delivery)
  }

  /** Stops deliveries of these lanes: ready ones are released, those not past the final dot are aborted and released. */
  holdLanes(isHeld: (lane: Lane) => boolean): void {
    this.track(this.release(this.readyQueue.takeWhere(({ turn }) => isHeld(turn.lane))))
    for (const delivery of this.inProgress)
      if (delivery.state === 'under way' && isHeld(delivery.turn.lane)) {
        delivery.state = 'held'
        delivery.controller.abort()
      }
  }

  /** Nothing that waits for a place begins any more; it is handed back. */
  async releaseReady(): Promise<void> {
    await this.release(this.readyQueue.takeAll())
  }

  /** Breaks off everything that is not past the final dot, from now on. */
  abort(): void {
    this.isAborting = true
    for (const { controller } of this.inProgress) controller.abort()
  }

  /** Resolves when nothing is under way any more. */
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
      state: 'under way',
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
    // If it can end, it has ended in a moment; if it is past the final dot, it shall not keep others waiting meanwhile.
    delivery.state = this.parts.schedule.detach(delivery.turn) ? 'set aside' : 'broken off'
    delivery.controller.abort()
  }

  /**
   * The connection is free as soon as the outcome is known: the next message of the site is claimed in the same commit that
   * writes this outcome down, and the connection does not wait for both.
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
    const recorded = outcomes.add({ job, startedAt, finishedAt, outcome, retryAt, clockAheadMs }, this.active)
    schedule.deliveryEnded(turn, paceSignal(outcome), durationMs, delivery.state === 'set aside')
    for (const next of this.readyQueue.finish(turn.site)) this.begin(next)
    this.releaseFailedSite(delivery)
    onChange()
    const nextAttemptAt = await recorded
    schedule.settled(turn, nextAttemptAt)
    onSettled()
    onChange()
  }

  /** No server accepted it, so the attempt does not count. */
  private async releaseHeld(delivery: Delivery): Promise<void> {
    const { ready } = delivery
    this.inProgress.delete(delivery)
    for (const next of this.readyQueue.finish(ready.turn.site)) this.begin(next)
    await this.release([ready])
    this.parts.onChange()
  }

  /** A site that rests has no use for what waits for it, and where nobody answers, none for what hangs there as well. */
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

  /** What was only broken off by our own stopping is due at once; a server's wish is granted up to the usual ceiling. */
  private retryAt(job: DeliveryJob, outcome: Outcome, now: number): number {
    if (isAborted(outcome)) return now
    const { retry } = this.parts
    const asked = outcome.kind === 'deferred' ? (outcome.retryAfterMs ?? 0) : 0
    const planned = retryDelayMs(retry, job.attempt, this.parts.random.fraction())
    return now + Math.max(planned, Math.min(asked, retry.maxMs))
  }
}

/** The signal ended it, before any server could have taken it. */
function isAborted(outcome: Outcome): outcome is Deferred & { readonly subtype: 'shutdown' } {
  return outcome.kind === 'deferred' && outcome.subtype === 'shutdown'
}

/** What we broke off because the other side was too slow is the other side's failure, not our stopping. */
function blameSlowSite(outcome: Outcome, { state }: Delivery): Outcome {
  if (state === 'under way' || state === 'held' || !isAborted(outcome)) return outcome
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

/** The operator can mend it, so the message waits; nothing was learnt about the site. */
function notReady(fault: string): Outcome {
  return { ...agentFailure, cause: 'config', subtype: 'signing_key', summary: fault }
}

/** A delivery in the hands of the agent. */
export interface ActiveDelivery {
  readonly turn: Turn
  /** Octets of its message that were read for it. */
  readonly octets: number
  /** On the monotonic clock, ms. */
  readonly startedAt: number
  readonly controller: AbortController
  /**
   * `set aside`: broken off, and no longer counted in its share of the connections. `held`: broken off since its campaign is held.
   */
  state: 'under way' | 'broken off' | 'set aside' | 'held'
}

/** What a slow line needs for a large message, in octets per ms. */
const SLOW_LINE = 32

/** Those of these shares of the connections that have had their time. @returns longest under way first */
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

/** What hangs at a site where, as others have shown, nobody answers; what has only just begun may be the one that succeeds. */
export function findHanging<T extends ActiveDelivery>(begun: Iterable<T>, site: Site, now: number): T[] {
  const found: T[] = []
  for (const delivery of begun)
    if (delivery.turn.site === site && isOver(delivery, FIRST_PATIENCE_MS, now)) found.push(delivery)
  return found
}

function isOver({ state, startedAt, octets }: ActiveDelivery, patienceMs: number, now: number): boolean {
  return state === 'under way' && now - startedAt >= patienceMs + octets / SLOW_LINE
}
