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
import { letGo } from './claiming/claim-store.js'
import { Claimer, type Ready } from './claiming/claimer.js'
import { ClockSteps } from './clock/clock-steps.js'
import { recoverOrphans } from './claiming/crash-recovery.js'
import type { DeliveryAgent, LocateSite } from './delivery-agent.js'
import { DeliveryRunner } from './delivery/delivery-runner.js'
import { correctDueTimes } from './clock/due-times.js'
import type { JobLoader } from './claiming/job-loader.js'
import { OctetSemaphore } from './delivery/octet-semaphore.js'
import { listLanes } from './queue-store.js'
import { Schedule } from './pacing/schedule.js'
import type { LoggedAttempt, OnAttempt } from './delivery/log-attempt.js'
import { OutcomeBatches } from './delivery/outcome-batches.js'
import { restLengths } from './pacing/site-pace.js'
import type { SiteState } from './pacing/site-register.js'
import type { Site } from './pacing/site.js'

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
const LONGEST_WAIT_MS = 60_000
/** Another process may have written; the clock may have been set. */
const WATCH_MS = 1_000
const AFTER_FAILURE_MS = 1_000
/** Between two looks for connections that can be taken from sites that do not answer. */
const MAKE_ROOM_MS = 250

export class QueueManager {
  private readonly parts: QueueManagerParts
  private readonly outcomes: OutcomeBatches
  private readonly schedule: Schedule
  private readonly claimer: Claimer
  private readonly deliveries: DeliveryRunner
  private readonly steps: ClockSteps
  private readonly holds: CampaignHolds
  /** Holds of campaigns may have changed, and could not be read. */
  private areHoldsUnread = false
  /** The rounds under way, or the last ones. */
  private rounds: Promise<void> = Promise.resolve()
  private isGoingRound = false
  private isRoundWanted = false
  private isStopping = false
  /** After trouble with the database nothing is begun for a moment: what fails now would only fail again. */
  private pause: Timer | undefined
  private dueTimer: Timer | undefined
  private roomTimer: Timer | undefined
  private watchTimer: Timer | undefined
  private correcting: Promise<void> = Promise.resolve()
  /** When an attempt last came to its end, on the monotonic clock. */
  private movedAt: number

  constructor(parts: QueueManagerParts) {
    this.parts = parts
    const { clock, policy } = parts
    const { retry } = policy
    this.steps = new ClockSteps(clock)
    this.movedAt = clock.monotonic()
    this.holds = new CampaignHolds(parts.database.reader)
    this.outcomes = new OutcomeBatches({ ...parts, onAttempt: attempt => this.noteAttempt(attempt) })
    const onChange = () => this.wake()
    const memory: OctetSemaphore<Site> = new OctetSemaphore<Site>(clock, LARGE_MEMORY, () => {
      this.schedule.memoryFreed()
      this.wake()
    })
    this.schedule = new Schedule({
      ...parts,
      rests: restLengths(retry),
      connections: policy.connections,
      isHeld: lane => this.holds.isHeld(lane),
      hasMemoryFor: site => memory.mayAsk(site),
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
      handBack: ready => this.handBack(ready),
    })
  }

  async start(): Promise<void> {
    const { database, clock, policy } = this.parts
    await this.parts.hold?.look()
    await recoverOrphans({ ...this.parts, retry: policy.retry })
    await this.lookAround()
    const now = clock.now()
    const lastWritten = (await lastEventAt(database.reader)) ?? now
    if (lastWritten > now) this.correct(0)
    this.watch()
  }

  /** Mail in this lane was committed to the queue and is due then. */
  noteEnqueued(lane: string, dueAt: number): void {
    this.schedule.note(lane, dueAt)
    this.wake()
  }

  /** A campaign was held or released; it has been committed. */
  noteHolds(): void {
    this.lookAtHolds()
      .then(async hasReleased => {
        if (hasReleased) await this.lookAtLanes()
      })
      .catch((error: unknown) => {
        this.areHoldsUnread = true
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
    return Math.max(0, Math.min(clock.now() - dueAt, clock.monotonic() - this.movedAt))
  }

  /** For the operator: the sites with mail due, under way or at rest, and their pace. */
  listSites(): SiteState[] {
    return this.schedule.listSites()
  }

  /** The configuration was read again: which site a destination belongs to is asked anew. */
  relocate(): void {
    this.schedule.relocate()
    this.wake()
  }

  /** The operator wants it tried now: looks at the queue again and ends the rests of sites. @param destinations all, or these */
  async retryNow(destinations?: ReadonlySet<string>): Promise<void> {
    this.schedule.endRests(destinations)
    await this.lookAround()
  }

  /**
   * Begins nothing more, waits for the deliveries under way, and after `graceMs` breaks off those that are not past
   * the final dot; they stay queued and are due at once when the server starts again.
   */
  async stop(graceMs: number): Promise<void> {
    this.isStopping = true
    for (const timer of [this.dueTimer, this.roomTimer, this.watchTimer, this.pause]) timer?.cancel()
    const cut = this.parts.clock.after(graceMs, () => this.deliveries.abort())
    await this.rounds
    await this.correcting
    await this.deliveries.giveUpReady()
    await this.deliveries.idle()
    cut.cancel()
    await this.outcomes.idle()
    await this.parts.agent.close()
  }

  /**
   * The last thing before the end, where `stop` would take too long: what is past the final dot was perhaps taken by its
   * server, so the next start does not try it at once but when its next attempt was planned.
   */
  async leave(): Promise<void> {
    const ids = this.deliveries.begunIds
    if (ids.length > 0) await this.parts.database.write(tx => letGo(tx.db, ids))
  }

  private noteAttempt(attempt: LoggedAttempt): void {
    this.movedAt = this.parts.clock.monotonic()
    this.parts.onAttempt?.(attempt)
  }

  private async lookAround(): Promise<void> {
    await this.parts.hold?.look()
    await this.lookAtHolds()
    await this.lookAtLanes()
  }

  /** @returns whether a campaign was released: its lanes must be noted again */
  private async lookAtHolds(): Promise<boolean> {
    this.areHoldsUnread = false
    const { hasHeld, hasReleased } = await this.holds.look()
    if (hasHeld) {
      this.deliveries.holdBack(lane => this.holds.isHeld(lane))
      await this.schedule.holdBack()
    }
    return hasReleased
  }

  private async lookAtLanes(): Promise<void> {
    for (const { lane, dueAt } of await listLanes(this.parts.database.reader)) this.schedule.note(lane, dueAt)
    this.wake()
  }

  private watch(): void {
    const { clock, database, log } = this.parts
    this.watchTimer = clock.after(WATCH_MS, () => {
      const stepMs = this.steps.takeStep()
      if (stepMs < 0) this.correct(-stepMs)
      if (stepMs > 0) this.wake()
      const isLookDue = database.hasForeignWrites() || this.areHoldsUnread
      const look = isLookDue ? this.lookAround() : Promise.resolve()
      look
        .catch((error: unknown) => {
          this.areHoldsUnread = true
          log.error('queue could not be read', { error: describeError(error) })
        })
        .finally(() => {
          if (!this.isStopping) this.watch()
        })
    })
  }

  /** The clock was set back. @param byMs 0 where nobody knows how far */
  private correct(byMs: number): void {
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
    this.isRoundWanted = true
    if (this.isGoingRound || this.isStopping || this.pause || this.parts.hold?.isHeld === true) return
    this.isGoingRound = true
    this.rounds = this.goRounds()
  }

  private async goRounds(): Promise<void> {
    while (this.isRoundWanted && !this.isStopping && !this.pause) {
      this.isRoundWanted = false
      const isBusy = this.deliveries.activeCount >= BUSY
      const { kind, ready } = await this.claimer.claimNext(() => this.freeSlots, isBusy)
      await this.begin(ready)
      if (kind === 'failed') this.pauseAfterFailure()
      if (kind !== 'nothing') this.isRoundWanted = true
    }
    // In one step with the last look at the wish: a call that comes from here on begins rounds of its own.
    this.isGoingRound = false
    this.armTimers()
  }

  private async begin(ready: readonly Ready[]): Promise<void> {
    // A campaign may have been held while its mail was being claimed.
    const isHeld = ({ turn }: Ready) => this.isStopping || this.holds.isHeld(turn.lane)
    for (const one of ready) if (!isHeld(one)) this.deliveries.takeIn(one)
    await this.handBack(ready.filter(isHeld))
  }

  /** What was ready and shall not begin now. */
  private async handBack(ready: readonly Ready[]): Promise<void> {
    for (const { release } of ready) release()
    const claimed = ready.map(({ turn, job: { messageId } }) => ({ turn, messageId }))
    await this.claimer.handBack(claimed, this.parts.clock.now())
  }

  /** Outcomes that wait to be written take slots as well, so that a database that does not write stops the queue. */
  private get freeSlots(): number {
    const { connections } = this.parts.policy
    const { activeCount, unsettledCount } = this.deliveries
    return Math.max(0, Math.min(connections - activeCount, 2 * connections - unsettledCount))
  }

  private pauseAfterFailure(): void {
    this.pause ??= this.parts.clock.after(AFTER_FAILURE_MS, () => {
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
      this.dueTimer = clock.after(Math.min(idleMs, LONGEST_WAIT_MS), () => this.wake())
    if (this.schedule.shortages.length > 0)
      this.roomTimer ??= clock.after(MAKE_ROOM_MS, () => {
        this.roomTimer = undefined
        this.makeRoom()
      })
  }

  /** Sites wait for connections: those that do not answer have had theirs for long enough. */
  private makeRoom(): void {
    for (const { standing, waiting } of this.schedule.shortages)
      this.deliveries.makeRoom(standing === 'proven' ? ['proven'] : ['new', 'doubtful'], waiting)
    this.wake()
  }
}
