/** `postroad jobs`: the scheduler's jobs with their last run, last error and next run. */
import type { Command } from 'commander'
import { isoTimeOrNull } from '../core/moments.js'
import { isServing } from '../db/sqlite/serve-lock.js'
import { listJobs, type JobState } from '../scheduler/job-store.js'
import { printResult, table, withAppliance, type CliContext, type CommonOptions } from './context.js'
import { command } from './options.js'

export function jobsCommand(program: Command, context: CliContext): void {
  command(program, 'jobs', 'list scheduled jobs with last run, next run and last error').action(
    async (options: CommonOptions) => {
      await withAppliance(context, options, async ({ config, database }) => {
        const serving = isServing(config.dataDir)
        const jobs = (await listJobs(database.reader)).map(job => (serving ? job : { ...job, ...AT_REST }))
        printResult(context, options, jobs.map(toJson), () =>
          table(
            ['JOB', 'STATE', 'LAST RUN', 'MS', 'NEXT RUN', 'LAST ERROR'],
            jobs.map(job => [
              job.name,
              stateOf(job),
              isoTimeOrNull(job.startedAt),
              job.durationMs,
              isoTimeOrNull(job.nextRunAt),
              job.lastError === null ? null : `${isoTimeOrNull(job.failedAt) ?? ''} ${job.lastError}`,
            ]),
          ),
        )
        if (!serving) context.complain('the server is not running; no jobs are running')
      })
    },
  )
}

/** Left in the database by a server that was killed. */
const AT_REST = { isRunning: false, nextRunAt: null }

function stateOf({ isRunning, startedAt, failedAt, endedAt }: JobState): string {
  if (isRunning) return 'running'
  if (startedAt === null) return 'never run'
  return failedAt !== null && failedAt === endedAt ? 'failed' : 'ok'
}

function toJson(job: JobState) {
  return {
    name: job.name,
    schedule: job.schedule,
    running: job.isRunning,
    last_started_at: isoTimeOrNull(job.startedAt),
    last_ended_at: isoTimeOrNull(job.endedAt),
    last_duration_ms: job.durationMs,
    next_run_at: isoTimeOrNull(job.nextRunAt),
    last_error: job.lastError,
    last_failed_at: isoTimeOrNull(job.failedAt),
  }
}
