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
import type { Ready } from '../claiming/claimer.js'
import type { ClockSteps } from '../clock/clock-steps.js'
import type { Standing } from '../pacing/connection-shares.js'
import type { DeliveryAgent, DeliveryJob } from '../delivery-agent.js'
import type { JobLoader } from '../claiming/job-loader.js'
import type { Lane } from '../lane.js'
import { hangingAt, overdue, type Begun } from '../pacing/overdue.js'
import { paceSignal } from '../pacing/pace-signal.js'
import { ReadyQueue } from './ready-queue.js'
import type { Schedule } from '../pacing/schedule.js'
import type { OutcomeBatches } from './outcome-batches.js'

export interface DeliveryRunnerParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly schedule: Schedule
  readonly outcomes: OutcomeBatches
  readonly steps: ClockSteps
  readonly retry: BackoffPolicy
  /** These were ready and shall not begin now. */
  readonly handBack: (ready: readonly Ready[]) => Promise<void>
  /** A connection is free, or something falls due again. */
  readonly onChange: () => void
  /** Outcomes have been committed; the event log has grown. */
  readonly onSettled: () => void
}

interface Delivery extends Begun {
  readonly ready: Ready
}

export class DeliveryRunner {
  private readonly parts: DeliveryRunnerParts
  private readonly readyQueue = new ReadyQueue<Ready>()
  private readonly begun = new Set<Delivery>()
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
  get begunIds(): string[] {
    return [...this.begun].map(({ ready }) => ready.job.messageId)
  }

  takeIn(ready: Ready): void {
    this.active += 1
    if (this.readyQueue.enter(ready)) this.begin(ready)
  }

  /** Breaks off what has had its time, of these shares, so that others may begin. @param most how many at most */
  makeRoom(standings: readonly Standing[], most: number): void {
    const now = this.parts.clock.monotonic()
    for (const delivery of overdue(this.begun, standings, now).slice(0, most)) this.breakOff(delivery)
  }

  /** Stops deliveries of these lanes: ready ones are released, those not past the final dot are aborted and released. */
  holdBack(isHeld: (lane: Lane) => boolean): void {
    this.keep(this.giveUp(this.readyQueue.takeWhere(({ turn }) => isHeld(turn.lane))))
    for (const delivery of this.begun)
      if (delivery.state === 'under way' && isHeld(delivery.turn.lane)) {
        delivery.state = 'held'
        delivery.controller.abort()
      }
  }

  /** Nothing that waits for a place begins any more; it is handed back. */
  async giveUpReady(): Promise<void> {
    await this.giveUp(this.readyQueue.takeAll())
  }

  /** Breaks off everything that is not past the final dot, from now on. */
  abort(): void {
    this.isAborting = true
    for (const { controller } of this.begun) controller.abort()
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    while (this.pending.size > 0) await Promise.all(this.pending)
  }

  private begin(ready: Ready): void {
    const delivery: Delivery = {
      ready,
      turn: ready.turn,
      octets: ready.octets,
      startedAt: this.parts.clock.monotonic(),
      controller: new AbortController(),
      state: 'under way',
    }
    this.begun.add(delivery)
    if (this.isAborting) delivery.controller.abort()
    this.keep(this.deliver(delivery))
  }

  private keep(work: Promise<void>): void {
    const kept: Promise<void> = work.finally(() => this.pending.delete(kept))
    this.pending.add(kept)
  }

  private breakOff(delivery: Delivery): void {
    // If it can end, it has ended in a moment; if it is past the final dot, it shall not keep others waiting meanwhile.
    delivery.state = this.parts.schedule.setAside(delivery.turn) ? 'set aside' : 'broken off'
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
    if (delivery.state === 'held' && isBrokenOff(outcome)) return this.handBackHeld(delivery)
    delivery.ready.release()
    const durationMs = clock.monotonic() - delivery.startedAt
    const finishedAt = clock.now()
    const clockAheadMs = steps.since(job.acceptedAt)
    const retryAt = this.retryAt(job, outcome, finishedAt)
    this.begun.delete(delivery)
    this.active -= 1
    const recorded = outcomes.add({ job, startedAt, finishedAt, outcome, retryAt, clockAheadMs }, this.active)
    schedule.ended(turn, paceSignal(outcome), durationMs, delivery.state === 'set aside')
    for (const next of this.readyQueue.leave(turn.site)) this.begin(next)
    this.giveBackWhatFailedSitesHold(delivery)
    onChange()
    const nextAttemptAt = await recorded
    schedule.settled(turn, nextAttemptAt)
    onSettled()
    onChange()
  }

  /** No server accepted it, so the attempt does not count. */
  private async handBackHeld(delivery: Delivery): Promise<void> {
    const { ready } = delivery
    this.begun.delete(delivery)
    for (const next of this.readyQueue.leave(ready.turn.site)) this.begin(next)
    await this.giveUp([ready])
    this.parts.onChange()
  }

  /** A site that rests has no use for what waits for it, and where nobody answers, none for what hangs there as well. */
  private giveBackWhatFailedSitesHold({ turn: { site } }: Delivery): void {
    this.keep(this.giveUp(this.readyQueue.takeStuck(site)))
    if (!site.pace.isGivenUp) return
    for (const other of hangingAt(this.begun, site, this.parts.clock.monotonic())) this.breakOff(other)
  }

  private async giveUp(ready: readonly Ready[]): Promise<void> {
    if (ready.length === 0) return
    this.active -= ready.length
    await this.parts.handBack(ready)
  }

  private async attempt(delivery: Delivery): Promise<Outcome> {
    const { agent, jobs, log } = this.parts
    const { job, fault } = delivery.ready
    if (fault !== undefined) return notReady(fault)
    try {
      const outcome = await agent.deliver(await jobs.complete(job), delivery.controller.signal)
      return this.isAborting ? outcome : toldApart(outcome, delivery)
    } catch (error) {
      log.error('delivery agent failed', { messageId: job.messageId, error: describeError(error) })
      return agentFailure
    }
  }

  /** What was only broken off by our own stopping is due at once; a server's wish is granted up to the usual ceiling. */
  private retryAt(job: DeliveryJob, outcome: Outcome, now: number): number {
    if (isBrokenOff(outcome)) return now
    const { retry } = this.parts
    const asked = outcome.kind === 'deferred' ? (outcome.retryAfterMs ?? 0) : 0
    const planned = retryDelayMs(retry, job.attempt, this.parts.random.fraction())
    return now + Math.max(planned, Math.min(asked, retry.maxMs))
  }
}

/** The signal ended it, before any server could have taken it. */
function isBrokenOff(outcome: Outcome): outcome is Deferred & { readonly subtype: 'shutdown' } {
  return outcome.kind === 'deferred' && outcome.subtype === 'shutdown'
}

/** What we broke off because the other side was too slow is the other side's failure, not our stopping. */
function toldApart(outcome: Outcome, { state }: Delivery): Outcome {
  if (state === 'under way' || state === 'held' || !isBrokenOff(outcome)) return outcome
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
