/**
 * The queue manager: asks the schedule whose turn it is, claims that mail, has it delivered, and settles outcomes.
 *
 * Knows no SMTP (that is the delivery agent's) and holds no more messages than are under way; everything else waits in
 * the database. It is woken when mail is enqueued, when a slot is freed, when something falls due, and, since the
 * command line writes to the same database, when another process has changed it.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import type { Deferred, Outcome } from '../mail/outcome.js'
import type { Clock, Timer } from '../world/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import { claim, type Claimed } from './claim.js'
import type { DeliveryAgent, DeliveryJob, LocateSite } from './delivery-agent.js'
import type { JobLoader, Loaded } from './job-loader.js'
import { paceSignal } from './pace-signal.js'
import { listLanes, takeBackAttempt } from './queue-store.js'
import { ReadyRoom } from './ready-room.js'
import { Schedule } from './schedule.js'
import { Settler } from './settler.js'
import { restLengths } from './site-pace.js'
import type { Turn } from './site.js'
import { dropSuppressed, suppressedJobs } from './suppress-queued.js'
import { dropWithdrawn } from './withdrawn.js'

export interface QueuePolicy {
  readonly retry: BackoffPolicy
  /** Deliveries under way at once, over all sites; the limits of each are the site's. */
  readonly connections: number
}

/** A message that is claimed and complete. */
interface Ready {
  readonly job: DeliveryJob
  readonly turn: Turn
  /** Why it cannot be delivered now; it is put off without asking the agent. */
  readonly fault: string | undefined
}

export interface QueueRunnerParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly locateSite: LocateSite
  readonly policy: QueuePolicy
  /** Outcomes have been committed; the event log has grown. */
  readonly onSettled: () => void
}

/** Lanes looked at in one claiming transaction. */
const LANES_PER_CLAIM = 40
/** From so many deliveries under way on, slots are freed so fast that a few ms gather a batch. */
const BUSY = 16
/** A timer stands still while the machine sleeps, and knows nothing of a clock that is set. */
const LONGEST_WAIT_MS = 60_000
const FOREIGN_WRITES_CHECK_MS = 1_000
const AFTER_FAILURE_MS = 1_000

export class QueueRunner {
  private readonly parts: QueueRunnerParts
  private readonly settler: Settler
  private readonly schedule: Schedule
  private readonly ready = new ReadyRoom<Ready>()
  /** Deliveries begun, or ready to begin, whose outcome has not come. */
  private active = 0
  /** Those, and the ones whose outcome is not on disk yet. */
  private readonly underWay = new Set<Promise<void>>()
  private readonly aborting = new AbortController()
  private pumping: Promise<void> | undefined
  private isPumpWanted = false
  private isStopping = false
  /** After trouble with the database nothing is begun for a moment: what fails now would only fail again. */
  private pause: Timer | undefined
  private dueTimer: Timer | undefined
  private foreignTimer: Timer | undefined

  constructor(parts: QueueRunnerParts) {
    this.parts = parts
    this.settler = new Settler(parts)
    this.schedule = new Schedule({
      ...parts,
      rests: restLengths(parts.policy.retry),
      onChange: () => this.pump(),
    })
  }

  async start(): Promise<void> {
    await this.lookAround()
    this.watchForeignWrites()
  }

  /** Mail in this lane was committed to the queue and is due then. */
  noteEnqueued(lane: string, dueAt: number): void {
    this.schedule.note(lane, dueAt)
    this.pump()
  }

  /** Deliveries under way. */
  get activeCount(): number {
    return this.active
  }

  /** For the operator: the sites with mail due, under way or at rest, and their pace. */
  listSites(): ReturnType<Schedule['listSites']> {
    return this.schedule.listSites()
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
    for (const timer of [this.dueTimer, this.foreignTimer, this.pause]) timer?.cancel()
    const cut = this.parts.clock.after(graceMs, () => this.aborting.abort())
    await this.pumping
    await this.giveUp(this.ready.takeAll())
    while (this.underWay.size > 0) await Promise.all(this.underWay)
    cut.cancel()
    await this.settler.idle()
    await this.parts.agent.close()
  }

  private async lookAround(): Promise<void> {
    for (const { lane, dueAt } of await listLanes(this.parts.database.reader)) this.schedule.note(lane, dueAt)
    this.pump()
  }

  private watchForeignWrites(): void {
    const { clock, database, log } = this.parts
    this.foreignTimer = clock.after(FOREIGN_WRITES_CHECK_MS, () => {
      const look = database.hasForeignWrites() ? this.lookAround() : Promise.resolve()
      look
        .catch((error: unknown) => log.error('queue could not be read', { error: describeError(error) }))
        .finally(() => {
          if (!this.isStopping) this.watchForeignWrites()
        })
    })
  }

  /** Starts what can be started. Calls that come while one is at work are answered by one more round. */
  private pump(): void {
    if (this.isStopping) return
    this.isPumpWanted = true
    this.pumping ??= this.pumpRounds().finally(() => {
      this.pumping = undefined
      // Wished for after the last round had begun to end.
      if (this.isPumpWanted && !this.pause) this.pump()
    })
  }

  private async pumpRounds(): Promise<void> {
    while (this.takeWish()) {
      if (await this.claimAndStart()) this.isPumpWanted = true
    }
    this.armTimer()
  }

  /** Outcomes that wait to be written take slots as well, so that a database that does not write stops the queue. */
  private get freeSlots(): number {
    const { connections } = this.parts.policy
    return Math.max(0, Math.min(connections - this.active, 2 * connections - this.underWay.size))
  }

  private takeWish(): boolean {
    if (this.pause) return false
    const isWanted = this.isPumpWanted && !this.isStopping
    this.isPumpWanted = false
    return isWanted
  }

  /**
   * Turns are given out when the transaction begins, so that they are for all slots that were freed until then.
   *
   * @returns whether there was anything to look at
   */
  private async claimAndStart(): Promise<boolean> {
    const { database, clock, random, policy, log, onSettled } = this.parts
    if (!this.schedule.hasTurn || this.freeSlots === 0) return false
    let turns: readonly Turn[] = []
    let claimed: readonly Claimed[]
    try {
      claimed = await database.write(
        async tx => {
          turns = this.schedule.takeTurns(this.freeSlots, LANES_PER_CLAIM)
          const found = await claim(tx.db, turns, clock.now(), policy.retry, random.fraction())
          return dropWithdrawn(tx, found, clock.now(), onSettled)
        },
        { canWait: this.active >= BUSY },
      )
    } catch (error) {
      log.error('queue could not be claimed', { error: describeError(error) })
      for (const turn of turns) this.schedule.looked(turn, [], clock.now())
      this.pauseAfterFailure()
      return true
    }
    for (const { turn, entries, nextDueAt } of claimed)
      this.schedule.looked(
        turn,
        entries.map(entry => entry.messageId),
        nextDueAt,
      )
    await this.startDeliveries(claimed)
    return turns.length > 0
  }

  private async startDeliveries(claimed: readonly Claimed[]): Promise<void> {
    try {
      const loaded = await this.parts.jobs.load(claimed.flatMap(({ entries }) => entries))
      const suppressed = await this.dropSuppressed(loaded.jobs)
      if (this.isStopping) await this.handBack(claimed)
      else this.beginAll(claimed, loaded, suppressed)
    } catch (error) {
      this.parts.log.error('queue could not be read', { error: describeError(error) })
      await this.handBack(claimed)
      this.pauseAfterFailure()
    }
  }

  private pauseAfterFailure(): void {
    this.pause ??= this.parts.clock.after(AFTER_FAILURE_MS, () => {
      this.pause = undefined
      this.pump()
    })
  }

  private beginAll(
    claimed: readonly Claimed[],
    { jobs, faults }: Loaded,
    suppressed: ReadonlySet<DeliveryJob>,
  ): void {
    const byMessage = new Map(jobs.map(job => [job.messageId, job]))
    for (const { turn, entries } of claimed)
      for (const { messageId } of entries) {
        const job = byMessage.get(messageId)
        // Without a job its row went while it was being claimed.
        if (!job || suppressed.has(job)) this.schedule.dropped(turn, messageId)
        else this.takeIn({ job, turn, fault: faults.get(messageId) })
      }
  }

  private async handBack(claimed: readonly Claimed[]): Promise<void> {
    await this.handBackAll(
      claimed.flatMap(({ turn, entries }) => entries.map(({ messageId }) => ({ turn, messageId }))),
    )
  }

  /** What was ready and shall not begin now. */
  private async giveUp(ready: readonly Ready[]): Promise<void> {
    if (ready.length === 0) return
    this.active -= ready.length
    await this.handBackAll(ready.map(({ job: { messageId }, turn }) => ({ turn, messageId })))
  }

  /** Gives back what was claimed and not begun: due again, the attempt not counted. */
  private async handBackAll(
    claimed: readonly { readonly turn: Turn; readonly messageId: string }[],
  ): Promise<void> {
    const { database, clock, log } = this.parts
    const now = clock.now()
    const ids = claimed.map(({ messageId }) => messageId)
    // Should this fail as well, they are due when their counted attempt would be repeated.
    await database
      .write(tx => takeBackAttempt(tx.db, ids, now))
      .catch((error: unknown) => log.error('queue could not be handed back', { error: describeError(error) }))
    for (const { turn, messageId } of claimed) this.schedule.dropped(turn, messageId, now)
  }

  private async dropSuppressed(jobs: readonly DeliveryJob[]): Promise<Set<DeliveryJob>> {
    const { database, clock, onSettled } = this.parts
    const suppressed = await suppressedJobs(database.reader, jobs)
    if (suppressed.size > 0) {
      await database.write(tx => dropSuppressed(tx, [...suppressed], clock.now()))
      onSettled()
    }
    return suppressed
  }

  private takeIn(ready: Ready): void {
    this.active += 1
    if (this.ready.enter(ready)) this.begin(ready)
  }

  private begin(ready: Ready): void {
    const { job, turn } = ready
    const delivery = this.deliver(ready).then(nextAttemptAt => {
      this.underWay.delete(delivery)
      this.schedule.settled(turn, job.messageId, nextAttemptAt)
      this.pump()
    })
    this.underWay.add(delivery)
  }

  /**
   * The slot is free as soon as the outcome is known: the next message of the site is claimed in the same commit that
   * writes this outcome down, and the connection does not wait for both.
   *
   * @returns when the message falls due again, if it stays queued
   */
  private async deliver({ job, turn, fault }: Ready): Promise<number | undefined> {
    const { clock, log, onSettled } = this.parts
    const startedAt = clock.now()
    const outcome = fault === undefined ? await this.attempt(job) : notReady(fault)
    const finishedAt = clock.now()
    const retryAt = this.retryAt(job, outcome, finishedAt)
    logOutcome(log, job, outcome)
    const settled = this.settler.add({ job, startedAt, finishedAt, outcome, retryAt }, this.active)
    this.active -= 1
    this.schedule.ended(turn, paceSignal(outcome), finishedAt - startedAt)
    for (const next of this.ready.leave(turn.site)) this.begin(next)
    void this.giveUp(this.ready.takeStuck(turn.site))
    this.pump()
    const nextAttemptAt = await settled
    onSettled()
    return nextAttemptAt
  }

  private async attempt(job: DeliveryJob): Promise<Outcome> {
    const { agent, jobs, log } = this.parts
    try {
      const { job: complete, release } = await jobs.complete(job)
      return await agent.deliver(complete, this.aborting.signal).finally(release)
    } catch (error) {
      log.error('delivery agent failed', { messageId: job.messageId, error: describeError(error) })
      return agentFailure
    }
  }

  /** What was only broken off by our own stopping is due at once; a server's wish is granted up to the usual ceiling. */
  private retryAt(job: DeliveryJob, outcome: Outcome, now: number): number {
    if (outcome.kind === 'deferred' && outcome.subtype === 'shutdown') return now
    const { retry } = this.parts.policy
    const asked = outcome.kind === 'deferred' ? (outcome.retryAfterMs ?? 0) : 0
    const planned = retryDelayMs(retry, job.attempt, this.parts.random.fraction())
    return now + Math.max(planned, Math.min(asked, retry.maxMs))
  }

  private armTimer(): void {
    this.dueTimer?.cancel()
    const dueAt = this.schedule.wakeAt
    // With every connection busy no clock can help: what ends next pumps.
    const isFull = this.freeSlots === 0
    if (dueAt === undefined || isFull || this.pause || this.isStopping) return
    const delayMs = Math.min(Math.max(0, dueAt - this.parts.clock.now()), LONGEST_WAIT_MS)
    this.dueTimer = this.parts.clock.after(delayMs, () => this.pump())
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

function logOutcome(log: Log, job: DeliveryJob, outcome: Outcome): void {
  const fields = {
    messageId: job.messageId,
    attempt: job.attempt,
    outcome: outcome.kind,
    summary: outcome.summary,
  }
  if (outcome.kind === 'delivered') log.debug('delivery attempted', fields)
  else log.info('delivery attempted', fields)
}
