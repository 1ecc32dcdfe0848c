/**
 * The queue manager: claims due messages (`claimer.ts`), or single mails as they are accepted (`accepted-claims.ts`), and delivers them
 * (`delivery-runner.ts`) while slots are free.
 *
 * Knows no SMTP. Memory holds only messages in progress; all others stay in the database. It wakes up when mail is
 * enqueued, a slot is freed, a message falls due, or another process (the command line) has written to the database.
 */
import type { RestoreHold } from '../accounts/restore-hold-store.js'
import type { BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import type { Services } from '../db/services.js'
import { lastEventAt } from '../events/store.js'
import type { Timer } from '../world/time/clock.js'
import { CampaignHolds } from './claiming/campaign-hold-store.js'
import { LaneLooks } from './lane-looks.js'
import { laneFromKey, type Lane } from './lane.js'
import { clearClaims, listLanes, listLanesOfNew, type LaneDue, type NewQueueEntry } from './queue-store.js'
import { AcceptedClaims } from './claiming/accepted-claims.js'
import type { Claimed } from './claiming/claim.js'
import { Claimer, type ReadyMessage } from './claiming/claimer.js'
import { ClockSteps, correctDueTimes } from './clock-changes.js'
import type { DeliveryAgent, LocateSite, SiteFacts } from './delivery-agent.js'
import { DeliveryRunner } from './delivery/delivery-runner.js'
import type { JobLoader } from './claiming/job-loader.js'
import type { NodeShares } from './node-shares.js'
import { OctetSemaphore } from './claiming/octet-semaphore.js'
import { Schedule } from './pacing/schedule.js'
import type { LoggedAttempt, OnAttempt } from './delivery/record-outcomes.js'
import { OutcomeWriter } from './delivery/outcome-writer.js'
import { siteBackoff } from './pacing/site-pace.js'
import type { SiteState, Site } from './pacing/site.js'

export interface QueuePolicy {
  readonly retry: BackoffPolicy
  /** Concurrent deliveries over all sites; each site has its own limit as well. */
  readonly connections: number
}

export interface QueueManagerParts extends Pick<Services, 'database' | 'clock' | 'random' | 'log'> {
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly locateSite: LocateSite
  readonly policy: QueuePolicy
  /** Identifies this run of the process; stored in every claim. */
  readonly incarnation: string
  /** Of several nodes: what this one delivers. */
  readonly shares?: NodeShares | undefined
  /** While held, a restored copy of a server sends nothing. */
  readonly hold?: RestoreHold
  /** Called after outcomes and their events were committed. */
  readonly onSettled: () => void
  readonly onAttempt?: OnAttempt
}

/** Memory for large messages in progress, bytes: those longer than one part, and large attachments. */
const LARGE_MEMORY = 64 * 1_024 * 1_024
/** Timers do not advance while the machine sleeps and do not notice clock changes, so none waits longer. */
const MAX_TIMER_MS = 60_000
/** Interval of checks for writes by other processes and clock changes. */
const WATCH_MS = 1_000
const FAILURE_PAUSE_MS = 1_000
/** Interval of checks for claims whose commit was not answered; after a failed round, the next one checks. */
const CLAIM_CHECK_MS = 60_000
/** Interval of checks for overdue deliveries while sites wait for connections. */
const OVERDUE_CHECK_MS = 250

export class QueueManager {
  private readonly parts: QueueManagerParts
  private readonly outcomes: OutcomeWriter
  private readonly schedule: Schedule
  private readonly claimer: Claimer
  private readonly accepted: AcceptedClaims
  private readonly deliveries: DeliveryRunner
  private readonly steps: ClockSteps
  private readonly holds: CampaignHolds
  private readonly looks: LaneLooks
  /** Changes by others were not looked for in all lanes yet. */
  private isLookPending = false
  /** Reading the campaign holds failed; retried by the watch timer. */
  private areHoldsStale = false
  private seenVersion: number
  private rounds: Promise<void> = Promise.resolve()
  private isClaiming = false
  private isRoundRequested = false
  private isStopping = false
  /** After a database error no claim starts for a moment. */
  private pause: Timer | undefined
  /** Monotonic, ms. */
  private claimCheckAt = 0
  private dueTimer: Timer | undefined
  private overdueTimer: Timer | undefined
  private watchTimer: Timer | undefined
  private correcting: Promise<void> = Promise.resolve()
  /** Monotonic, ms. */
  private lastAttemptEndAt: number

  constructor(parts: QueueManagerParts) {
    this.parts = parts
    const { clock, policy } = parts
    const { retry } = policy
    this.steps = new ClockSteps(clock)
    this.lastAttemptEndAt = clock.monotonic()
    this.seenVersion = parts.database.changes.version('queue')
    this.holds = new CampaignHolds(parts.database.reader)
    const { reader } = parts.database
    this.looks = new LaneLooks({
      clock,
      all: () => listLanes(reader),
      ofNew: moment => listLanesOfNew(reader, moment),
    })
    this.outcomes = new OutcomeWriter({ ...parts, onAttempt: attempt => this.noteAttempt(attempt) })
    const onChange = () => this.wake()
    const memory: OctetSemaphore<Site> = new OctetSemaphore<Site>(clock, LARGE_MEMORY, () => {
      this.schedule.onMemoryFreed()
      this.wake()
    })
    const { shares } = parts
    const ofNodes = shares && {
      shareOf: (facts: SiteFacts) => shares.shareOf(facts),
      partOf: (destination: string) => shares.partOf(destination),
    }
    this.schedule = new Schedule({
      ...parts,
      ...ofNodes,
      backoff: siteBackoff(retry),
      connections: policy.connections,
      isHeld: lane => this.isHeld(lane),
      hasMemoryFor: site => memory.mayTake(site),
      onChange,
    })
    const { schedule, outcomes, steps } = this
    this.claimer = new Claimer({ ...parts, ...ofNodes, schedule, memory, retry })
    this.accepted = new AcceptedClaims({
      ...parts,
      ...ofNodes,
      schedule,
      retry,
      freeSlots: () => this.freeSlots,
      start: claimed => this.startAccepted(claimed),
      onRollback: () => {
        this.claimCheckAt = -Infinity
        this.isRoundRequested = true
      },
      onEnded: () => {
        if (this.isRoundRequested || this.schedule.hasTurn) this.wake()
      },
    })
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
    const { database, clock } = this.parts
    await this.parts.hold?.look()
    await this.reload()
    const now = clock.now()
    const lastWritten = (await lastEventAt(database.reader)) ?? now
    if (lastWritten > now) this.correctDueTimes(0)
    this.watch()
    this.parts.shares?.start(this.schedule, () => this.reloadShares())
  }

  /** Call it after messages of this lane were committed. */
  noteEnqueued(lane: string, dueAt: number): void {
    const { shares, database } = this.parts
    this.steps.notice()
    if (shares) {
      const { destination } = laneFromKey(lane)
      if (!shares.owns(destination) || shares.partOf(destination)) database.announce?.('queue')
      if (!shares.owns(destination)) return
    }
    this.schedule.note(lane, dueAt)
    this.wake()
  }

  /**
   * Call it in the transaction that accepts mail: claims what can be delivered at once. Call `noteEnqueued` for the rest after the commit.
   *
   * @returns the entries to store
   */
  claimAccepted(tx: Tx, entries: readonly NewQueueEntry[]): readonly NewQueueEntry[] {
    if (this.isStopping || this.pause || this.parts.hold?.isHeld === true) return entries
    return this.accepted.claim(tx, entries)
  }

  /** Call it after what this node delivers changed: lanes of other nodes are left to them, and this node's are loaded. */
  reloadShares(): void {
    this.dropHeldLanes()
      .then(() => this.loadLanes())
      .catch((error: unknown) => {
        this.areHoldsStale = true
        this.parts.log.error('queue not read', { error: describeError(error) })
      })
  }

  /** Call it after a campaign was held or released and the change was committed. */
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

  get activeCount(): number {
    return this.deliveries.activeCount
  }

  /**
   * How long due mail has waited without any attempt ending, or one of its site, ms; 0 if everything moves, is empty or
   * is held.
   */
  get standstillMs(): number {
    const { clock, hold } = this.parts
    const dueAt = this.schedule.oldestDueAt
    if (dueAt === undefined || hold?.isHeld === true) return 0
    const ofAll = Math.min(clock.now() - dueAt, clock.monotonic() - this.lastAttemptEndAt)
    return Math.max(0, ofAll, this.schedule.stuckMs)
  }

  /** Sites with due mail, deliveries in progress or a back-off, for the operator. */
  listSites(): SiteState[] {
    return this.schedule.listSites()
  }

  /** @returns undefined if the destination's site is not known, or has no mail here */
  siteServing(destination: string): SiteState | undefined {
    return this.schedule.siteServing(destination)
  }

  /** Name of the destination's site, if it was looked up. */
  siteNameOf(destination: string): string | undefined {
    return this.schedule.siteNameOf(destination)
  }

  /** Call it after a configuration reload: the site of every destination is looked up again. */
  invalidateSites(): void {
    this.schedule.invalidateSites()
    this.wake()
  }

  /** Resets site back-offs and reloads the queue, for `queue retry`. @param destinations default: all */
  async retryNow(destinations?: ReadonlySet<string>): Promise<void> {
    this.schedule.resetBackoff(destinations)
    await this.reload()
  }

  /**
   * Starts no more deliveries and waits for those in progress. After `graceMs` it aborts those that have not sent the
   * final dot; they stay queued, due immediately at the next start.
   */
  async stop(graceMs: number): Promise<void> {
    this.isStopping = true
    this.parts.shares?.stop()
    for (const timer of [this.dueTimer, this.overdueTimer, this.watchTimer, this.pause]) timer?.cancel()
    const cut = this.parts.clock.after(graceMs, () => this.deliveries.abort())
    // First: each delivery that ends meanwhile would start the next one of its site.
    const released = this.deliveries.releaseReady()
    await this.rounds
    await this.accepted.idle()
    await this.correcting
    await released
    await this.deliveries.idle()
    cut.cancel()
    await this.outcomes.idle()
    await this.parts.agent.close()
  }

  /**
   * Last resort if `stop` takes too long. A server may have accepted what is past the final dot, so these messages keep
   * their planned retry time instead of being due immediately at the next start.
   */
  async clearActiveClaims(): Promise<void> {
    const ids = this.deliveries.inProgressIds
    const { database, incarnation } = this.parts
    if (ids.length > 0) await database.write(tx => clearClaims(tx.db, ids, incarnation))
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

  /** @returns whether a campaign was released, so that its lanes must be loaded again */
  private async applyHolds(): Promise<boolean> {
    this.areHoldsStale = false
    const { hasHeld, hasReleased } = await this.holds.reload()
    if (hasHeld) await this.dropHeldLanes()
    return hasReleased
  }

  private async dropHeldLanes(): Promise<void> {
    this.deliveries.holdLanes(lane => this.holds.isHeld(lane))
    await this.schedule.holdLanes()
  }

  /** Held campaigns, and what other nodes deliver. */
  private isHeld(lane: Lane): boolean {
    return this.holds.isHeld(lane) || this.parts.shares?.owns(lane.destination) === false
  }

  private async loadLanes(): Promise<void> {
    this.noteLanes(await this.looks.all())
  }

  private noteLanes(lanes: readonly LaneDue[]): void {
    for (const { lane, dueAt } of lanes) this.schedule.note(lane, dueAt)
    this.wake()
  }

  /** Others have written to the database. */
  private async lookForChanges(): Promise<void> {
    const hasFailed = this.areHoldsStale
    await this.parts.hold?.look()
    if ((await this.applyHolds()) || hasFailed) {
      await this.loadLanes()
      this.isLookPending = false
      return
    }
    const look = await this.looks.next()
    this.isLookPending = look?.isComplete !== true
    if (look) this.noteLanes(look.lanes)
  }

  private watch(): void {
    const { clock, database, log } = this.parts
    this.watchTimer = clock.after(WATCH_MS, () => {
      const stepMs = this.steps.takeStep()
      if (stepMs < 0) this.correctDueTimes(-stepMs)
      if (stepMs > 0 || clock.monotonic() >= this.claimCheckAt) this.wake()
      const version = database.changes.version('queue')
      const isLookDue = version !== this.seenVersion || this.areHoldsStale || this.isLookPending
      this.seenVersion = version
      const look = isLookDue ? this.lookForChanges() : Promise.resolve()
      look
        .catch((error: unknown) => {
          this.areHoldsStale = true
          log.error('queue not read', { error: describeError(error) })
        })
        .finally(() => {
          if (!this.isStopping) this.watch()
        })
    })
  }

  /** @param byMs how far the clock was set back; 0 if unknown */
  private correctDueTimes(byMs: number): void {
    const { database, clock, policy, log } = this.parts
    log.warn('clock set back, correcting due times', { byMs: Math.round(byMs) })
    const work = async () => {
      const lanes = (await listLanes(database.reader)).map(({ lane }) => lane)
      const onCorrected = (lane: string, dueAt: number) => this.noteEnqueued(lane, dueAt)
      await correctDueTimes({ database, retry: policy.retry }, lanes, { now: clock.now(), byMs }, onCorrected)
    }
    this.correcting = this.correcting
      .then(work)
      .catch((error: unknown) => log.error('due times not corrected', { error: describeError(error) }))
  }

  /** Starts a claim round. A call during a round causes one more. */
  private wake(): void {
    this.isRoundRequested = true
    if (this.isClaiming || this.isStopping || this.pause || this.parts.hold?.isHeld === true) return
    this.isClaiming = true
    this.rounds = this.claimRounds()
  }

  private async claimRounds(): Promise<void> {
    while (this.isRoundRequested && !this.isStopping && !this.pause) {
      this.isRoundRequested = false
      if (this.parts.clock.monotonic() >= this.claimCheckAt) await this.releaseLostClaims()
      const { kind, ready } = await this.claimer.claimNext(() => this.freeSlots)
      await this.begin(ready)
      if (kind === 'failed') {
        this.pauseAfterFailure()
        this.claimCheckAt = -Infinity
      }
      if (kind !== 'nothing') this.isRoundRequested = true
    }
    // No await since `isRoundRequested` was checked, so no request is lost.
    this.isClaiming = false
    this.armTimers()
  }

  /** Called when no claim is under way. If it fails, the next round tries again. */
  private async releaseLostClaims(): Promise<void> {
    const { clock, log } = this.parts
    try {
      const lanes = await this.claimer.releaseLost(id => this.isInHand(id))
      for (const { lane, dueAt } of lanes) this.schedule.note(lane, dueAt)
      this.claimCheckAt = clock.monotonic() + CLAIM_CHECK_MS
    } catch (error) {
      log.error('claims not checked', { error: describeError(error) })
    }
  }

  private isInHand(messageId: string): boolean {
    return this.accepted.isInHand(messageId) || this.deliveries.isInHand(messageId)
  }

  private async startAccepted(claimed: readonly Claimed[]): Promise<void> {
    const { kind, ready } = await this.claimer.load(claimed, true)
    await this.begin(ready)
    if (kind === 'failed') this.pauseAfterFailure()
  }

  private async begin(ready: readonly ReadyMessage[]): Promise<void> {
    // A campaign may have been held during the claim.
    const isHeld = ({ turn }: ReadyMessage) => this.isStopping || this.holds.isHeld(turn.lane)
    const refused = this.deliveries.start(ready.filter(one => !isHeld(one)))
    await this.releaseClaims([...ready.filter(isHeld), ...refused])
  }

  private async releaseClaims(ready: readonly ReadyMessage[]): Promise<void> {
    for (const { freeMemory: release } of ready) release()
    const claimed = ready.map(({ turn, job: { messageId } }) => ({ turn, messageId }))
    await this.claimer.release(claimed, this.parts.clock.now())
  }

  /** Outcomes that wait for a commit count as well, so a database that cannot write stops the queue. */
  private get freeSlots(): number {
    const { connections } = this.parts.policy
    const { activeCount, unsettledCount } = this.deliveries
    const { count } = this.accepted
    return Math.max(0, Math.min(connections - activeCount, 2 * connections - unsettledCount) - count)
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
    // With all connections busy, the next ended delivery wakes the queue.
    if (idleMs !== undefined && this.freeSlots > 0)
      this.dueTimer = clock.after(Math.min(idleMs, MAX_TIMER_MS), () => this.wake())
    if (this.schedule.shortages.length > 0)
      this.overdueTimer ??= clock.after(OVERDUE_CHECK_MS, () => {
        this.overdueTimer = undefined
        this.abortOverdue()
      })
  }

  /** Sites wait for connections: aborts deliveries to unresponsive sites that have used up their time. */
  private abortOverdue(): void {
    for (const { standing, waiting } of this.schedule.shortages)
      this.deliveries.abortOverdue(standing === 'proven' ? ['proven'] : ['new', 'doubtful'], waiting)
    this.wake()
  }
}
