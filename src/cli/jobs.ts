/** `postroad jobs`: the scheduler's jobs with their last run, last error and next run; and `postroad jobs run NAME`. */
import type { Command } from 'commander'
import type { Job } from '../appliance/system/job-routes.js'
import { AppError } from '../core/errors.js'
import { withApi, type ApiClient } from './api.js'
import { printResult, table, type CliContext, type CommonOptions } from './context.js'
import { apiCommand } from './options.js'

const MAX_JOBS = 1_000
const POLL_MS = 250

export function jobsCommand(program: Command, context: CliContext): void {
  const group = apiCommand(
    program,
    'jobs',
    'list scheduled jobs with last run, next run and last error',
  ).action(async (options: CommonOptions) => {
    await withApi(context, options, async ({ admin, isServing }) => {
      const jobs = await list(admin)
      printJobs(context, options, jobs, jobs)
      if (!isServing) context.complain('the server is not running; no jobs are running')
    })
  })
  apiCommand(group, 'run <name>', 'run a job now, and wait until it has ended').action(
    async (name: string, options: CommonOptions) => {
      await withApi(context, options, async ({ admin }) => {
        let job = await admin.send<Job>('POST', `/jobs/${encodeURIComponent(name)}/run`)
        while (job.running) {
          await context.world.clock.sleep(POLL_MS)
          job = await getJob(admin, name)
        }
        printJobs(context, options, job, [job])
        if (stateOf(job) === 'failed') context.fail()
      })
    },
  )
}

function list(admin: ApiClient): Promise<Job[]> {
  return admin.list<Job>('/jobs', {}, MAX_JOBS)
}

async function getJob(admin: ApiClient, name: string): Promise<Job> {
  const job = (await list(admin)).find(one => one.name === name)
  if (!job) throw new AppError('not_found', `no job ${name}`)
  return job
}

function printJobs(context: CliContext, options: CommonOptions, json: unknown, jobs: readonly Job[]): void {
  printResult(context, options, json, () =>
    table(
      ['JOB', 'STATE', 'LAST RUN', 'MS', 'NEXT RUN', 'LAST ERROR'],
      jobs.map(job => [
        job.name,
        stateOf(job),
        job.last_started_at,
        job.last_duration_ms,
        job.next_run_at,
        job.last_error === null ? null : `${job.last_failed_at ?? ''} ${job.last_error}`,
      ]),
    ),
  )
}

function stateOf(job: Job): 'running' | 'never run' | 'failed' | 'ok' {
  if (job.running) return 'running'
  if (job.last_started_at === null) return 'never run'
  return job.last_failed_at !== null && job.last_failed_at === job.last_ended_at ? 'failed' : 'ok'
}
