/**
 * Job state that survives restarts: kept in memory by `JobRecords`, saved in batches; and its SQL.
 *
 * All changed jobs are saved in one statement, at most once per `GATHER_MS` and together with other writes.
 * Fails: never; what could not be saved is retried with the next change or at shutdown.
 */
import { describeError } from '../core/errors.js'
import type { Queries } from '../db/database.js'
import type { Services } from '../db/services.js'
import { inPieces } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { Timer } from '../world/time/clock.js'

export type JobRecordsParts = Pick<Services, 'database' | 'clock' | 'log'>

const GATHER_MS = 10_000
/** Where other nodes read the state. */
const SHARED_GATHER_MS = 5_000
const MAX_ERROR_LENGTH = 500

export class JobRecords {
  private readonly parts: JobRecordsParts
  private readonly states = new Map<string, JobState>()
  private readonly changed = new Set<string>()
  private timer: Timer | undefined
  private writing: Promise<void> = Promise.resolve()

  constructor(parts: JobRecordsParts) {
    this.parts = parts
  }

  /** Loads the saved state of jobs that are run from now on. A run interrupted by a crash no longer counts as running. */
  async open(jobs: readonly { readonly name: string; readonly schedule: string }[]): Promise<void> {
    const { database } = this.parts
    const known = new Map((await listJobs(database.reader)).map(state => [state.name, state]))
    for (const { name, schedule } of jobs) {
      this.states.set(name, { ...NEVER_RUN, ...known.get(name), name, schedule, isRunning: false })
      this.changed.add(name)
    }
  }

  /** Deletes what is stored of jobs that this version no longer has. @param names of all it has */
  async deleteOthers(names: readonly string[]): Promise<void> {
    if (names.length > 0) await this.parts.database.write(tx => deleteOtherJobs(tx.db, names))
  }

  /** Current state of the open jobs. */
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
        : { lastError: describeError(error).slice(0, MAX_ERROR_LENGTH), failedAt: now }),
    })
  }

  /** Saves what has changed. */
  flush(): Promise<void> {
    this.timer?.cancel()
    this.timer = undefined
    return (this.writing = this.writing.then(() => this.write()))
  }

  /** Final write of these jobs: none has a next run any more. Later changes are ignored: another node may run them. */
  async close(names: readonly string[]): Promise<void> {
    for (const name of names) this.change(name, { nextRunAt: null })
    await this.flush()
    for (const name of names) this.states.delete(name)
  }

  private change(name: string, change: Partial<JobState>): void {
    const state = this.states.get(name)
    if (!state) return
    this.states.set(name, { ...state, ...change })
    this.changed.add(name)
    const { clock, database } = this.parts
    this.timer ??= clock.after(database.announce ? SHARED_GATHER_MS : GATHER_MS, () => void this.flush())
  }

  private async write(): Promise<void> {
    const { database, log } = this.parts
    const names = [...this.changed]
    this.changed.clear()
    if (names.length === 0) return
    const states = names.flatMap(name => this.states.get(name) ?? [])
    try {
      await database.write(async tx => {
        await saveJobs(tx.db, states)
        tx.changed('jobs')
      })
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

interface JobRow {
  name: string
  schedule: string
  is_running: Flag
  started_at: number | null
  ended_at: number | null
  duration_ms: number | null
  next_run_at: number | null
  last_error: string | null
  failed_at: number | null
}

declare module '../db/tables.js' {
  interface Tables {
    jobs: JobRow
  }
}

/** Moments are ms since epoch UTC. */
export interface JobState {
  readonly name: string
  /** Cron expression, UTC. */
  readonly schedule: string
  readonly isRunning: boolean
  /** Null if it never ran. */
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** Of the last completed run. */
  readonly durationMs: number | null
  /** Null while the server is stopped. */
  readonly nextRunAt: number | null
  /** Of the most recent failed run, at `failedAt`. */
  readonly lastError: string | null
  readonly failedAt: number | null
}

/** Ordered by name. */
export async function listJobs(db: Queries): Promise<JobState[]> {
  const rows = await db.selectFrom('jobs').selectAll().orderBy('name').execute()
  return rows.map(row => ({
    name: row.name,
    schedule: row.schedule,
    isRunning: row.is_running === 1,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    durationMs: row.duration_ms,
    nextRunAt: row.next_run_at,
    lastError: row.last_error,
    failedAt: row.failed_at,
  }))
}

export async function saveJobs(db: Queries, jobs: readonly JobState[]): Promise<void> {
  const rows = jobs.map(job => ({
    name: job.name,
    schedule: job.schedule,
    is_running: flag(job.isRunning),
    started_at: job.startedAt,
    ended_at: job.endedAt,
    duration_ms: job.durationMs,
    next_run_at: job.nextRunAt,
    last_error: job.lastError,
    failed_at: job.failedAt,
  }))
  for (const piece of inPieces(rows))
    await db
      .insertInto('jobs')
      .values(piece)
      .onConflict(conflict =>
        conflict.column('name').doUpdateSet(e => ({
          schedule: e.ref('excluded.schedule'),
          is_running: e.ref('excluded.is_running'),
          started_at: e.ref('excluded.started_at'),
          ended_at: e.ref('excluded.ended_at'),
          duration_ms: e.ref('excluded.duration_ms'),
          next_run_at: e.ref('excluded.next_run_at'),
          last_error: e.ref('excluded.last_error'),
          failed_at: e.ref('excluded.failed_at'),
        })),
      )
      .execute()
}

/** Deletes jobs that this version no longer has. */
export async function deleteOtherJobs(db: Queries, names: readonly string[]): Promise<void> {
  await db.deleteFrom('jobs').where('name', 'not in', names).execute()
}
