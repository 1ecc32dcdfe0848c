/**
 * The queue manager: has what is due claimed (`claimer.ts`) and delivered (`delivery-runner.ts`), as far as there is room.
 *
 * Knows no SMTP (that is the delivery agent's) and holds no more messages than are under way; everything else waits in
 * the database. It is woken when mail is enqueued, when a slot is freed, when something falls due, and, since the
 * command line writes to the same database, when another process has changed it.
 */
import type { RestoreHold } from '../accounts/restore-hold-store.js'
import type { BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import { lastEventAt } from '../events/store.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import { CampaignHolds } from './claiming/campaign-hold-store.js'
import { clearClaims, listLanes } from './queue-store.js'
import { Claimer, type ReadyMessage } from './claiming/claimer.js'
import { ClockSteps, correctDueTimes } from './clock-changes.js'
import { recoverOrphans } from './claiming/crash-recovery.js'
import type { DeliveryAgent, LocateSite } from './delivery-agent.js'
import { DeliveryRunner } from './delivery/delivery-runner.js'
import type { JobLoader } from './claiming/job-loader.js'
import { OctetSemaphore } from './delivery/octet-semaphore.js'
import { Schedule } from './pacing/schedule.js'
import type { LoggedAttempt, OnAttempt } from './delivery/record-outcomes.js'
import { OutcomeWriter } from './delivery/outcome-writer.js'
import { siteBackoff } from './pacing/site-pace.js'
import type { SiteState, Site } from './pacing/site.js'

export interface QueuePolicy {
  readonly retry: BackoffPolicy
  /** Deliveries under way at once, over all sites; the limits of each are the site's. */
  readonly connections: number
}

export interface QueueManagerParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly locateSite: LocateSite
  readonly policy: QueuePolicy
  /** Names this run of the process: what is in hand bears it. */
  readonly incarnation: string
  /** A restored copy sends nothing until it is released. */
  readonly hold?: RestoreHold
  /** Outcomes have been committed; the event log has grown. */
  readonly onSettled: () => void
  /** For monitors. */
  readonly onAttempt?: OnAttempt
}

/** From so many deliveries under way on, slots are freed so fast that a few ms gather a batch. */
const BUSY = 16
/** Of messages longer than one part, or with as much in attachments, under way at the same time. */
const LARGE_MEMORY = 64 * 1_024 * 1_024
/** A timer stands still while the machine sleeps, and knows nothing of a clock that is set. */
const MAX_TIMER_MS = 60_000
/** Another process may have written; the clock may have been set. */
const WATCH_MS = 1_000
const FAILURE_PAUSE_MS = 1_000
/** Between two looks for connections that can be taken from sites that do not answer. */
const OVERDUE_CHECK_MS = 250

export class QueueManager {
  private readonly parts: QueueManagerParts
  private readonly outcomes: OutcomeWriter
  private readonly schedule: Schedule
  private readonly claimer: Claimer
  private readonly deliveries: DeliveryRunner
  private readonly steps: ClockSteps
  private readonly holds: CampaignHolds
  /** Holds of campaigns may have changed, and could not be read. */
  private areHoldsStale = false
  /** The rounds under way, or the last ones. */
  private rounds: Promise<void> = Promise.resolve()
  private isClaiming = false
  private isRoundRequested = false
  private isStopping = false
  /** After trouble with the database nothing is begun for a moment: what fails now would only fail again. */
  private pause: Timer | undefined
  private dueTimer: Timer | undefined
  private overdueTimer: Timer | undefined
  private watchTimer: Timer | undefined
  private correcting: Promise<void> = Promise.resolve()
  /** When an attempt last came to its end, on the monotonic clock. */
  private lastAttemptEndAt: number

  constructor(parts: QueueManagerParts) {
    this.parts = parts
    const { clock, policy } = parts
    const { retry } = policy
    this.steps = new ClockSteps(clock)
    this.lastAttemptEndAt = clock.monotonic()
    this.holds = new CampaignHolds(parts.database.reader)
    this.outcomes = new OutcomeWriter({ ...parts, onAttempt: attempt => this.noteAttempt(attempt) })
    const onChange = () => this.wake()
    const memory: OctetSemaphore<Site> = new OctetSemaphore<Site>(clock, LARGE_MEMORY, () => {
      this.schedule.onMemoryFreed()
      this.wake()
    })
    this.schedule = new Schedule({
      ...parts,
      backoff: siteBackoff(retry),
      connections: policy.connections,
      isHeld: lane => this.holds.isHeld(lane),
      hasMemoryFor: site => memory.mayTake(site),
      onChange,
    })
    const { schedule, outcomes, steps } = this
    this.claimer = new Claimer({ ...parts, schedule, memory, retry })
    this.deliveries = new DeliveryRunner({
      ...parts,
      schedule,
      outcomes,
      steps,
      retry,
      onChange,
      releaseClaims: ready => this.releaseClaims(ready),
    })
  }

  async start(): Promise<void> {
    const { database, clock, policy } = this.parts
    await this.parts.hold?.look()
    await recoverOrphans({ ...this.parts, retry: policy.retry })
    await this.reload()
    const now = clock.now()
    const lastWritten = (await lastEventAt(database.reader)) ?? now
    if (lastWritten > now) this.correctDueTimes(0)
    this.watch()
  }

  /** Mail in this lane was committed to the queue and is due then. */
  noteEnqueued(lane: string, dueAt: number): void {
    this.schedule.note(lane, dueAt)
    this.wake()
  }

  /** A campaign was held or released; it has been committed. */
  reloadHolds(): void {
    this.applyHolds()
      .then(async hasReleased => {
        if (hasReleased) await this.loadLanes()
      })
      .catch((error: unknown) => {
        this.areHoldsStale = true
        this.parts.log.error('campaign holds not read, retrying', { error: describeError(error) })
      })
  }

  /** Deliveries under way. */
  get activeCount(): number {
    return this.deliveries.activeCount
  }

  /**
   * For how long mail that is due has waited while no attempt came to an end, ms; 0 where the queue moves, has nothing to do, or is
   * held.
   */
  get standstillMs(): number {
    const { clock, hold } = this.parts
    const dueAt = this.schedule.oldestDueAt
    if (dueAt === undefined || hold?.isHeld === true) return 0
    return Math.max(0, Math.min(clock.now() - dueAt, clock.monotonic() - this.lastAttemptEndAt))
  }

  /** For the operator: the sites with mail due, under way or at rest, and their pace. */
  listSites(): SiteState[] {
    return this.schedule.listSites()
  }

  /** The configuration was read again: which site a destination belongs to is asked anew. */
  invalidateSites(): void {
    this.schedule.invalidateSites()
    this.wake()
  }

  /** The operator wants it tried now: looks at the queue again and ends the rests of sites. @param destinations all, or these */
  async retryNow(destinations?: ReadonlySet<string>): Promise<void> {
    this.schedule.resetBackoff(destinations)
    await this.reload()
  }

  /**
   * Begins nothing more, waits for the deliveries under way, and after `graceMs` breaks off those that are not past
   * the final dot; they stay queued and are due at once when the server starts again.
   */
  async stop(graceMs: number): Promise<void> {
    this.isStopping = true
    for (const timer of [this.dueTimer, this.overdueTimer, this.watchTimer, this.pause]) timer?.cancel()
    const cut = this.parts.clock.after(graceMs, () => this.deliveries.abort())
    await this.rounds
    await this.correcting
    await this.deliveries.releaseReady()
    await this.deliveries.idle()
    cut.cancel()
    await this.outcomes.idle()
    await this.parts.agent.close()
  }

  /**
   * The last thing before the end, where `stop` would take too long: what is past the final dot was perhaps taken by its
   * server, so the next start does not try it at once but when its next attempt was planned.
   */
  async clearActiveClaims(): Promise<void> {
    const ids = this.deliveries.inProgressIds
    if (ids.length > 0) await this.parts.database.write(tx => clearClaims(tx.db, ids))
  }

  private noteAttempt(attempt: LoggedAttempt): void {
    this.lastAttemptEndAt = this.parts.clock.monotonic()
    this.parts.onAttempt?.(attempt)
  }

  private async reload(): Promise<void> {
    await this.parts.hold?.look()
    await this.applyHolds()
    await this.loadLanes()
  }

  /** @returns whether a campaign was released: its lanes must be noted again */
  private async applyHolds(): Promise<boolean> {
    this.areHoldsStale = false
    const { hasHeld, hasReleased } = await this.holds.reload()
    if (hasHeld) {
      this.deliveries.holdLanes(lane => this.holds.isHeld(lane))
      await this.schedule.holdLanes()
    }
    return hasReleased
  }

  private async loadLanes(): Promise<void> {
    for (const { lane, dueAt } of await listLanes(this.parts.database.reader)) this.schedule.note(lane, dueAt)
    this.wake()
  }

  private watch(): void {
    const { clock, database, log } = this.parts
    this.watchTimer = clock.after(WATCH_MS, () => {
      const stepMs = this.steps.takeStep()
      if (stepMs < 0) this.correctDueTimes(-stepMs)
      if (stepMs > 0) this.wake()
      const isLookDue = database.hasForeignWrites() || this.areHoldsStale
      const look = isLookDue ? this.reload() : Promise.resolve()
      look
        .catch((error: unknown) => {
          this.areHoldsStale = true
          log.error('queue could not be read', { error: describeError(error) })
        })
        .finally(() => {
          if (!this.isStopping) this.watch()
        })
    })
  }

  /** The clock was set back. @param byMs 0 where nobody knows how far */
  private correctDueTimes(byMs: number): void {
    const { database, clock, policy, log } = this.parts
    log.warn('the clock was set back; due times are corrected', { byMs: Math.round(byMs) })
    const work = async () => {
      const lanes = (await listLanes(database.reader)).map(({ lane }) => lane)
      const onCorrected = (lane: string, dueAt: number) => this.noteEnqueued(lane, dueAt)
      await correctDueTimes({ database, retry: policy.retry }, lanes, { now: clock.now(), byMs }, onCorrected)
    }
    this.correcting = this.correcting
      .then(work)
      .catch((error: unknown) => log.error('due times not corrected', { error: describeError(error) }))
  }

  /** Starts what can be started. Calls that come while a round is under way are answered by one more. */
  private wake(): void {
    this.isRoundRequested = true
    if (this.isClaiming || this.isStopping || this.pause || this.parts.hold?.isHeld === true) return
    this.isClaiming = true
    this.rounds = this.claimRounds()
  }

  private async claimRounds(): Promise<void> {
    while (this.isRoundRequested && !this.isStopping && !this.pause) {
      this.isRoundRequested = false
      const isBusy = this.deliveries.activeCount >= BUSY
      const { kind, ready } = await this.claimer.claimNext(() => this.freeSlots, isBusy)
      await this.begin(ready)
      if (kind === 'failed') this.pauseAfterFailure()
      if (kind !== 'nothing') this.isRoundRequested = true
    }
    // In one step with the last look at the wish: a call that comes from here on begins rounds of its own.
    this.isClaiming = false
    this.armTimers()
  }

  private async begin(ready: readonly ReadyMessage[]): Promise<void> {
    // A campaign may have been held while its mail was being claimed.
    const isHeld = ({ turn }: ReadyMessage) => this.isStopping || this.holds.isHeld(turn.lane)
    for (const one of ready) if (!isHeld(one)) this.deliveries.start(one)
    await this.releaseClaims(ready.filter(isHeld))
  }

  /** What was ready and shall not begin now. */
  private async releaseClaims(ready: readonly ReadyMessage[]): Promise<void> {
    for (const { freeMemory: release } of ready) release()
    const claimed = ready.map(({ turn, job: { messageId } }) => ({ turn, messageId }))
    await this.claimer.release(claimed, this.parts.clock.now())
  }

  /** Outcomes that wait to be written take slots as well, so that a database that does not write stops the queue. */
  private get freeSlots(): number {
    const { connections } = this.parts.policy
    const { activeCount, unsettledCount } = this.deliveries
    return Math.max(0, Math.min(connections - activeCount, 2 * connections - unsettledCount))
  }

  private pauseAfterFailure(): void {
    this.pause ??= this.parts.clock.after(FAILURE_PAUSE_MS, () => {
      this.pause = undefined
      this.wake()
    })
  }

  private armTimers(): void {
    if (this.pause || this.isStopping) return
    const { clock } = this.parts
    const { idleMs } = this.schedule
    this.dueTimer?.cancel()
    // With every connection busy no clock can help: what ends next wakes.
    if (idleMs !== undefined && this.freeSlots > 0)
      this.dueTimer = clock.after(Math.min(idleMs, MAX_TIMER_MS), () => this.wake())
    if (this.schedule.shortages.length > 0)
      this.overdueTimer ??= clock.after(OVERDUE_CHECK_MS, () => {
        this.overdueTimer = undefined
        this.abortOverdue()
      })
  }

  /** Sites wait for connections: those that do not answer have had theirs for long enough. */
  private abortOverdue(): void {
    for (const { standing, waiting } of this.schedule.shortages)
      this.deliveries.abortOverdue(standing === 'proven' ? ['proven'] : ['new', 'doubtful'], waiting)
    this.wake()
  }
}
