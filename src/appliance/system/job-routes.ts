/** Scheduled jobs in the admin API: their state, and running one now. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isoTimeOrNull } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import { recordAction } from '../../events/activity-store.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import { IntegerOrNull, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'
import { listJobs, type JobState } from '../../scheduler/job-store.js'
import { ANSWER_MS, type JobRequests } from '../../scheduler/job-requests.js'

export interface JobParts extends Pick<Services, 'database' | 'clock'> {
  /** Of the running server; undefined if none runs. */
  readonly jobs: RunningJobs | undefined
}

/** Of all nodes that share the database. */
export interface RunningJobs extends Pick<JobRequests, 'run'> {
  list(): Promise<readonly JobState[]>
}

const JobSchema = Type.Object(
  {
    name: Type.String(),
    schedule: Type.String({ description: 'Cron expression, UTC.' }),
    running: Type.Boolean(),
    last_started_at: MomentOrNull({ description: 'Null if it never ran.' }),
    last_ended_at: MomentOrNull(),
    last_duration_ms: IntegerOrNull(),
    next_run_at: MomentOrNull({ description: 'Null while the server is stopped.' }),
    last_error: TextOrNull({ description: 'Of the last failed run; later successes do not clear it.' }),
    last_failed_at: MomentOrNull(),
  },
  { title: 'Job' },
)

export type Job = Static<typeof JobSchema>

export function jobRoutes(parts: JobParts): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/jobs',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'listJobs',
      chapter: 'System',
      summary: 'List scheduled jobs.',
      query: PageQuery,
      item: JobSchema,
      handle: async (_request, page) =>
        listingOf(await currentJobs(parts), page, jobToApi, ({ name }) => name),
    }),
    adminRoute({
      method: 'POST',
      path: '/jobs/:name/run',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'runJob',
      chapter: 'System',
      summary: 'Run a job now.',
      description:
        'Starts the job and answers without waiting for its end; its next scheduled run stays as planned. A job that is running is not ' +
        'started again (409). Of several nodes, any passes the request to the one that runs the job.',
      params: Type.Object({ name: Type.String({ maxLength: 200 }) }),
      response: JobSchema,
      status: 202,
      errors: ['not_found', 'conflict', 'unavailable'],
      async handle({ operator, params: { name } }) {
        await startJob(parts, name)
        await recordAction(parts, operator.actor, 'job.started', name)
        const started = (await currentJobs(parts)).find(job => job.name === name)
        if (!started) throw new Error(`job ${name} is not listed`)
        return jobToApi(started)
      },
    }),
  ]
}

/** @throws AppError not_found, conflict, unavailable */
async function startJob({ jobs }: JobParts, name: string): Promise<void> {
  switch (jobs ? await jobs.run(name) : 'stopping') {
    case 'started':
      return
    case 'unknown':
      throw new AppError('not_found', `no job ${name}; GET /jobs lists them`)
    case 'running':
      throw new AppError('conflict', `job ${name} is running already`)
    case 'held':
      throw new AppError(
        'conflict',
        `job ${name} sends mail, which is held since a restore; release the queue first`,
      )
    case 'unanswered':
      throw new AppError(
        'unavailable',
        `no node that runs the job answered within ${ANSWER_MS / 1_000} seconds; GET /nodes shows which node does what`,
      )
    case 'stopping':
      throw new AppError('unavailable', 'the server is not running; jobs run in the server')
  }
}

/** Ordered by name. */
async function currentJobs({ jobs, database }: JobParts): Promise<JobState[]> {
  if (jobs) return [...(await jobs.list())].sort((a, b) => (a.name < b.name ? -1 : 1))
  // A server that was killed left its last state.
  return (await listJobs(database.reader)).map(job => ({ ...job, isRunning: false, nextRunAt: null }))
}

function jobToApi(job: JobState): Job {
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
