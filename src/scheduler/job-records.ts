/**
 * Job state that survives restarts: kept in memory, saved in batches.
 *
 * Used by the scheduler. All changed jobs are saved in one statement, at most once per `GATHER_MS` and together with other writes.
 * Fails: never; what could not be saved is retried with the next change or at shutdown.
 */
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { Log } from '../world/log.js'
import { deleteOtherJobs, listJobs, saveJobs, type JobState } from './job-store.js'

export interface JobRecordsParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

const GATHER_MS = 10_000
const LONGEST_ERROR = 500

export class JobRecords {
  private readonly parts: JobRecordsParts
  private readonly states = new Map<string, JobState>()
  private readonly changed = new Set<string>()
  private timer: Timer | undefined
  private writing: Promise<void> = Promise.resolve()

  constructor(parts: JobRecordsParts) {
    this.parts = parts
  }

  /** Loads the saved state. A run interrupted by a crash no longer counts as running. */
  async open(jobs: readonly { readonly name: string; readonly schedule: string }[]): Promise<void> {
    const { database } = this.parts
    const known = new Map((await listJobs(database.reader)).map(state => [state.name, state]))
    for (const { name, schedule } of jobs) {
      this.states.set(name, { ...NEVER_RUN, ...known.get(name), name, schedule, isRunning: false })
      this.changed.add(name)
    }
    const names = jobs.map(({ name }) => name)
    if (names.length > 0) await database.write(tx => deleteOtherJobs(tx.db, names))
  }

  /** Current state of every job. */
  list(): readonly JobState[] {
    return [...this.states.values()]
  }

  planned(name: string, nextRunAt: number): void {
    this.change(name, { nextRunAt })
  }

  began(name: string): void {
    this.change(name, { isRunning: true, startedAt: this.parts.clock.now() })
  }

  /** @param error what the run threw */
  ended(name: string, durationMs: number, error?: unknown): void {
    const now = this.parts.clock.now()
    this.change(name, {
      isRunning: false,
      endedAt: now,
      durationMs: Math.round(durationMs),
      ...(error === undefined
        ? {}
        : { lastError: describeError(error).slice(0, LONGEST_ERROR), failedAt: now }),
    })
  }

  /** Final write: no job has a next run any more. */
  async close(): Promise<void> {
    this.timer?.cancel()
    for (const name of this.states.keys()) this.change(name, { nextRunAt: null })
    this.timer?.cancel()
    await this.writing
    await this.write()
  }

  private change(name: string, change: Partial<JobState>): void {
    const state = this.states.get(name)
    if (!state) return
    this.states.set(name, { ...state, ...change })
    this.changed.add(name)
    this.timer ??= this.parts.clock.after(GATHER_MS, () => {
      this.timer = undefined
      this.writing = this.write()
    })
  }

  private async write(): Promise<void> {
    const { database, log } = this.parts
    const names = [...this.changed]
    this.changed.clear()
    if (names.length === 0) return
    const states = names.flatMap(name => this.states.get(name) ?? [])
    try {
      await database.write(tx => saveJobs(tx.db, states), { canWait: true })
    } catch (error) {
      for (const name of names) this.changed.add(name)
      log.debug('job state not saved', { error: describeError(error) })
    }
  }
}

const NEVER_RUN = {
  startedAt: null,
  endedAt: null,
  durationMs: null,
  nextRunAt: null,
  lastError: null,
  failedAt: null,
}
