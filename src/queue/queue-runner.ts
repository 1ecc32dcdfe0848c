/**
 * The queue manager: finds out which destinations have mail due, claims it, has it delivered, and settles outcomes.
 *
 * Knows no SMTP (that is the delivery agent's) and holds no more messages than are under way; everything else waits in
 * the database. It is woken when mail is enqueued, when a slot is freed, when something falls due, and, since the
 * command line writes to the same database, when another process has changed it.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import type { Outcome } from '../mail/outcome.js'
import type { Clock, Timer } from '../world/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import { claim, type Claimed, type ClaimRequest } from './claim.js'
import type { DeliveryAgent, DeliveryJob } from './delivery-agent.js'
import { Destinations, type Destination } from './destinations.js'
import type { JobLoader } from './job-loader.js'
import { listDestinations } from './queue-store.js'
import { Settler } from './settler.js'
import { dropSuppressed, suppressedJobs } from './suppress-queued.js'

export interface QueuePolicy {
  readonly retry: BackoffPolicy
  /** Deliveries under way at once, over all destinations. */
  readonly connections: number
  /** The same for one destination. */
  readonly connectionsPerDestination: number
}

export interface QueueRunnerParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly policy: QueuePolicy
  /** Outcomes have been committed; the event log has grown. */
  readonly onSettled: () => void
}

/** Destinations looked at in one claiming transaction. */
const TURNS_PER_CLAIM = 20
const FOREIGN_WRITES_CHECK_MS = 1_000
const AFTER_FAILURE_MS = 1_000

export class QueueRunner {
  private readonly parts: QueueRunnerParts
  private readonly settler: Settler
  private readonly destinations = new Destinations()
  private readonly underWay = new Set<Promise<void>>()
  private readonly aborting = new AbortController()
  private pumping: Promise<void> | undefined
  private isPumpWanted = false
  private isStopping = false
  private dueTimer: Timer | undefined
  private foreignTimer: Timer | undefined

  constructor(parts: QueueRunnerParts) {
    this.parts = parts
    this.settler = new Settler(parts)
  }

  async start(): Promise<void> {
    await this.lookAround()
    this.watchForeignWrites()
  }

  /** Mail for this destination was committed to the queue and is due then. */
  noteEnqueued(destination: string, dueAt: number): void {
    this.destinations.note(destination, dueAt)
    this.pump()
  }

  /** Deliveries under way. */
  get activeCount(): number {
    return this.underWay.size
  }

  /**
   * Begins nothing more, waits for the deliveries under way, and after `graceMs` breaks off those that are not past
   * the final dot; they stay queued and are due at once when the server starts again.
   */
  async stop(graceMs: number): Promise<void> {
    this.isStopping = true
    this.dueTimer?.cancel()
    this.foreignTimer?.cancel()
    const cut = this.parts.clock.after(graceMs, () => this.aborting.abort())
    await this.pumping
    while (this.underWay.size > 0) await Promise.all(this.underWay)
    cut.cancel()
    await this.settler.idle()
    await this.parts.agent.close()
  }

  private async lookAround(): Promise<void> {
    for (const { destination, dueAt } of await listDestinations(this.parts.database.reader))
      this.destinations.note(destination, dueAt)
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
      if (this.isPumpWanted) this.pump()
    })
  }

  private async pumpRounds(): Promise<void> {
    while (this.takeWish()) {
      const requests = this.nextRequests()
      if (requests.length === 0) continue
      try {
        await this.claimAndStart(requests)
      } catch (error) {
        this.parts.log.error('queue could not be claimed', { error: describeError(error) })
        const retryAt = this.parts.clock.now() + AFTER_FAILURE_MS
        for (const { destination } of requests) this.destinations.note(destination.name, retryAt)
      }
      this.isPumpWanted = true
    }
    this.armTimer()
  }

  private takeWish(): boolean {
    const isWanted = this.isPumpWanted && !this.isStopping
    this.isPumpWanted = false
    return isWanted
  }

  private nextRequests(): ClaimRequest[] {
    const { connections, connectionsPerDestination } = this.parts.policy
    let free = connections - this.underWay.size
    if (free <= 0) return []
    const slotsOf = (destination: Destination) => connectionsPerDestination - destination.inHand.size
    const turn = this.destinations.takeTurns(
      this.parts.clock.now(),
      Math.min(TURNS_PER_CLAIM, free),
      destination => slotsOf(destination) > 0,
    )
    return turn.map((destination, index) => {
      // Each of the others in this turn gets at least one.
      const slots = Math.min(slotsOf(destination), free - (turn.length - 1 - index))
      free -= slots
      return { destination, slots }
    })
  }

  private async claimAndStart(requests: readonly ClaimRequest[]): Promise<void> {
    const { database, clock, random, policy, jobs } = this.parts
    const claimed = await database.write(tx =>
      claim(tx.db, requests, clock.now(), policy.retry, random.fraction()),
    )
    for (const { destination, entries, nextDueAt } of claimed) {
      for (const entry of entries) destination.inHand.set(entry.messageId, entry.nextAttemptAt)
      if (nextDueAt !== undefined) this.destinations.note(destination.name, nextDueAt)
      else this.destinations.forgetIfIdle(destination)
    }
    await this.startDeliveries(claimed, await jobs.load(claimed.flatMap(({ entries }) => entries)))
  }

  private async startDeliveries(claimed: readonly Claimed[], jobs: readonly DeliveryJob[]): Promise<void> {
    const suppressed = await this.dropSuppressed(jobs)
    const byMessage = new Map(jobs.map(job => [job.messageId, job]))
    for (const { destination, entries } of claimed)
      for (const { messageId } of entries) {
        const job = byMessage.get(messageId)
        // Without a job its row went while it was being claimed.
        if (!job || suppressed.has(job)) this.destinations.freed(destination, messageId)
        else this.begin(job, destination)
      }
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

  private begin(job: DeliveryJob, destination: Destination): void {
    const delivery = this.deliver(job).finally(() => {
      this.underWay.delete(delivery)
      this.destinations.freed(destination, job.messageId)
      this.pump()
    })
    this.underWay.add(delivery)
  }

  private async deliver(job: DeliveryJob): Promise<void> {
    const { clock, agent, log, onSettled } = this.parts
    const startedAt = clock.now()
    const outcome = await agent.deliver(job, this.aborting.signal).catch((error: unknown): Outcome => {
      log.error('delivery agent failed', { messageId: job.messageId, error: describeError(error) })
      return agentFailure
    })
    const finishedAt = clock.now()
    const retryAt = this.retryAt(job, outcome, finishedAt)
    logOutcome(log, job, outcome)
    await this.settler.add({ job, startedAt, finishedAt, outcome, retryAt })
    onSettled()
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
    const dueAt = this.destinations.nextDueAt
    if (dueAt === undefined || this.isStopping) return
    this.dueTimer = this.parts.clock.after(Math.max(0, dueAt - this.parts.clock.now()), () => this.pump())
  }
}

const agentFailure: Outcome = {
  kind: 'deferred',
  cause: 'transient',
  scope: 'source',
  permanence: 'transient',
  subtype: 'internal_error',
  summary: 'the delivery agent failed; see the log',
  tried: [],
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
