/**
 * SQL of job state: last run, duration, last error and next run.
 *
 * Written by `job-records.ts`, read by `postroad jobs`. One row per job.
 */
import type { Queries } from '../db/database.js'
import { inPieces } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'

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
