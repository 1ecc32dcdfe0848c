/**
 * Runs jobs on their cron schedules, in the process.
 *
 * The composition root passes in the jobs of all resources, starts it last and stops it first. Runs of a job never overlap; a failed
 * run is logged and retried at the next scheduled time. The clock is checked at least twice a minute instead of trusting long timers,
 * so a suspended machine or a changed clock neither loses runs nor delays them: runs missed meanwhile are made up once. Runs missed
 * while the server was stopped are not, so a schedule should be at least hourly unless a missed run does no harm. `job-records.ts`
 * stores results. Fails: never.
 */
import { describeError } from '../core/errors.js'
import type { Services } from '../db/services.js'
import type { Timer } from '../world/time/clock.js'
import { readCron, type CronTimes } from './cron.js'
import type { JobRecords } from './job-store.js'

export interface Job {
  /** Name in the log. */
  readonly name: string
  /** Cron expression of five fields, UTC. */
  readonly schedule: string
  /** Also run when the scheduler starts. */
  readonly isRunAtStart?: boolean
  /** The job sends something, so its runs are skipped while a restored copy is held. */
  readonly isHeldAfterRestore?: boolean
  /**
   * Long jobs work in steps and return after the current one once `stopping` aborts. Errors are logged.
   *
   * @param stopping aborted when the server shuts down
   */
  run(stopping: AbortSignal): Promise<void>
}

/** Results of a request to run a job. */
export const RUN_ANSWERS = ['started', 'running', 'held', 'stopping', 'unknown'] as const

export type RunAnswer = (typeof RUN_ANSWERS)[number]

export interface SchedulerParts extends Pick<Services, 'clock' | 'random' | 'log'> {
  /** Absent: state is not stored. */
  readonly records?: JobRecords
  /** A restored copy that was not released yet. */
  readonly isHeld?: () => boolean
}

const LOOK_EVERY_MS = 30_000
/** Random delay added to each job, so that jobs of the same minute do not start together. */
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
  private stopping = new AbortController()
  private timer: Timer | undefined
  private lastLook = 0

  /** @throws Error for an invalid schedule */
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

  /** Also after `stop` has resolved. */
  start(): void {
    if (this.stopping.signal.aborted) this.stopping = new AbortController()
    this.plan()
    for (const entry of this.entries)
      if (entry.job.isRunAtStart === true && !entry.running && !this.isHeldBack(entry.job)) this.begin(entry)
    this.waitForNext()
  }

  /**
   * Runs a job now, besides its schedule; its next scheduled run stays as planned.
   *
   * @returns `held` for a job that must not run while a restored copy is held
   */
  runNow(name: string): RunAnswer {
    const entry = this.entries.find(({ job }) => job.name === name)
    if (!entry) return 'unknown'
    if (this.stopping.signal.aborted) return 'stopping'
    if (entry.running) return 'running'
    if (this.isHeldBack(entry.job)) return 'held'
    this.begin(entry)
    return 'started'
  }

  /** Starts no more jobs and waits for running ones. @param graceMs wait at most this long @returns whether all have ended */
  async stop(graceMs: number): Promise<boolean> {
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
    await this.parts.records?.close(this.entries.map(({ job }) => job.name))
    return this.entries.every(({ running }) => !running)
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
    // The clock was set back: times planned before may be years away.
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
      failure = error ?? 'threw undefined'
      log.error('job failed', { job: name, error: describeError(error) })
    }
    records?.ended(name, clock.monotonic() - startedAt, failure)
    log.debug('job finished', { job: name })
  }
}

function dueAfter({ times, offsetMs }: Entry, now: number): number {
  return times.after(now - offsetMs) + offsetMs
}
