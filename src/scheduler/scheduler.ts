/**
 * Runs jobs at their times: the in-process cron.
 *
 * The composition root hands it the jobs of the resources, starts it when all else runs and stops it first. A job never
 * overlaps with itself; one that fails is logged and comes again at its next time. It looks at the clock at least twice a
 * minute and trusts no long timer, so that a machine that slept or whose clock was set misses nothing and waits for nothing:
 * times that were slept through are made up for once. What was missed while the appliance did not run is not made up for, so a
 * schedule is hourly at the rarest unless missing one does no harm. `job-records.ts` keeps what became of each. Fails: never.
 */
import { describeError } from '../core/errors.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import { readCron, type CronTimes } from './cron.js'
import type { JobRecords } from './job-records.js'

export interface Job {
  /** As the log names it. */
  readonly name: string
  /** Cron expression of five fields, UTC. */
  readonly schedule: string
  /** It begins with the scheduler already, and not first at its time. */
  readonly isRunAtStart?: boolean
  /** It begins things to be sent: while a restored copy is held it is passed over, and comes again at its next time. */
  readonly isHeldAfterRestore?: boolean
  /**
   * Long work is done in pieces, and ends after the one in hand when the signal comes. What it throws is logged.
   *
   * @param stopping the appliance stops
   */
  run(stopping: AbortSignal): Promise<void>
}

export interface SchedulerParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Absent: nothing is kept. */
  readonly records?: JobRecords
  /** A restored copy that nobody has released yet. */
  readonly isHeld?: () => boolean
}

const LOOK_EVERY_MS = 30_000
/** Each job comes up to so much later than its schedule says: jobs of one minute do not begin in one moment. */
const SPREAD_MS = 20_000

interface Entry {
  readonly job: Job
  readonly times: CronTimes
  readonly offsetMs: number
  dueAt: number
  running: Promise<void> | undefined
}

export class Scheduler {
  private readonly parts: SchedulerParts
  private readonly entries: readonly Entry[]
  private readonly stopping = new AbortController()
  private timer: Timer | undefined
  private lastLook = 0

  /** @throws Error for a schedule that is none */
  constructor(parts: SchedulerParts, jobs: readonly Job[]) {
    this.parts = parts
    this.entries = jobs.map(job => ({
      job,
      times: readCron(job.schedule),
      offsetMs: Math.floor(SPREAD_MS * parts.random.fraction()),
      dueAt: 0,
      running: undefined,
    }))
  }

  start(): void {
    this.plan()
    for (const entry of this.entries)
      if (entry.job.isRunAtStart === true && !this.isHeldBack(entry.job)) this.begin(entry)
    this.waitForNext()
  }

  /** Begins no job any more and waits for those under way. @param graceMs for so long at most */
  async stop(graceMs: number): Promise<void> {
    const { clock, log } = this.parts
    this.timer?.cancel()
    this.stopping.abort()
    const under = this.entries.flatMap(({ running }) => running ?? [])
    if (under.length > 0) {
      const isOver = new AbortController()
      await Promise.race([Promise.all(under), clock.sleep(graceMs, isOver.signal)])
      isOver.abort()
      for (const { job, running } of this.entries) if (running) log.warn('job interrupted', { job: job.name })
    }
    await this.parts.records?.close()
  }

  private plan(): void {
    const now = (this.lastLook = this.parts.clock.now())
    for (const entry of this.entries) this.planNext(entry, now)
  }

  private planNext(entry: Entry, now: number): void {
    entry.dueAt = dueAfter(entry, now)
    this.parts.records?.planned(entry.job.name, entry.dueAt)
  }

  private waitForNext(): void {
    const { clock } = this.parts
    const next = this.entries.reduce((least, { dueAt }) => Math.min(least, dueAt), Infinity)
    const delayMs = Math.min(next - clock.now(), LOOK_EVERY_MS)
    this.timer = clock.after(delayMs, () => {
      this.look()
      this.waitForNext()
    })
  }

  private look(): void {
    const now = this.parts.clock.now()
    // Set back: what was planned by the wrong time may be years away.
    if (now < this.lastLook) this.plan()
    this.lastLook = now
    for (const entry of this.entries) {
      if (entry.dueAt > now) continue
      this.planNext(entry, now)
      if (this.isHeldBack(entry.job)) continue
      if (entry.running) this.parts.log.debug('job skipped', { job: entry.job.name })
      else this.begin(entry)
    }
  }

  private isHeldBack({ isHeldAfterRestore = false }: Job): boolean {
    return isHeldAfterRestore && (this.parts.isHeld?.() ?? false)
  }

  private begin(entry: Entry): void {
    entry.running = this.run(entry.job).finally(() => (entry.running = undefined))
  }

  private async run(job: Job): Promise<void> {
    const { clock, log, records } = this.parts
    const { name } = job
    log.debug('job started', { job: name })
    records?.began(name)
    const startedAt = clock.monotonic()
    let failure: unknown
    try {
      await job.run(this.stopping.signal)
    } catch (error) {
      failure = error ?? 'it threw nothing'
      log.error('job failed', { job: name, error: describeError(error) })
    }
    records?.ended(name, clock.monotonic() - startedAt, failure)
    log.debug('job finished', { job: name })
  }
}

function dueAfter({ times, offsetMs }: Entry, now: number): number {
  return times.after(now - offsetMs) + offsetMs
}
