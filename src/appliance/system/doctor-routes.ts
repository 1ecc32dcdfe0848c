/**
 * The doctor in the admin API: an examination is started, and its results are read as they come.
 *
 * One examination runs at a time, and the last one is kept in memory.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import { adminRoute } from '../../http/admin-route.js'
import { Id, Moment, MomentOrNull } from '../../http/answer/answer-fields.js'
import type { Route } from '../../http/route.js'
import type { Check } from '../doctor/check.js'

export interface DoctorParts extends Pick<Services, 'clock' | 'newId'> {
  /** @param report called once per check as it finishes */
  readonly examine: (report: (check: Check) => void, stopping: AbortSignal) => Promise<unknown>
}

interface Run {
  readonly id: string
  readonly startedAt: number
  endedAt: number | null
  readonly checks: Check[]
}

const ExaminationSchema = Type.Object(
  {
    id: Id(),
    started_at: Moment(),
    ended_at: MomentOrNull({ description: 'Null while checks are running, at most 10 seconds.' }),
    checks: Type.Array(
      Type.Object({
        status: Type.Enum(['ok', 'warn', 'fail']),
        name: Type.String({ description: 'What was checked, e.g. dns.ptr.' }),
        what: Type.String({ description: 'Result of the check.' }),
        fix: Type.Optional(Type.String({ description: 'How to fix it.' })),
      }),
      { description: 'Finished checks, in the order in which they finished.' },
    ),
  },
  { title: 'Examination' },
)

export type DoctorReport = Static<typeof ExaminationSchema>

export class DoctorRuns {
  private readonly parts: DoctorParts
  private readonly stopping = new AbortController()
  private last: Run | undefined
  private running: Promise<void> | undefined

  constructor(parts: DoctorParts) {
    this.parts = parts
  }

  /** @returns the running examination, started if none is running */
  start(): Run {
    const { clock, newId, examine } = this.parts
    if (this.last && this.running) return this.last
    const run: Run = { id: newId(), startedAt: clock.now(), endedAt: null, checks: [] }
    this.last = run
    this.running = (async () => {
      await examine(check => run.checks.push(check), this.stopping.signal)
      run.endedAt = clock.now()
      this.running = undefined
    })()
    return run
  }

  /** The running or last examination; undefined if none was started. */
  latest(): Run | undefined {
    return this.last
  }

  /** @param id or `latest` @throws AppError not_found */
  get(id: string): Run {
    if (this.last && [this.last.id, 'latest'].includes(id)) return this.last
    throw new AppError(
      'not_found',
      `no examination ${id}; only the last one since the server started is kept`,
    )
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.running
  }
}

export function doctorRoutes(runs: DoctorRuns): Route[] {
  return [
    adminRoute({
      method: 'POST',
      path: '/doctor',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'startExamination',
      chapter: 'System',
      summary: 'Check everything that mail depends on.',
      description:
        'Checks DNS, ports, routes, certificate, disk and database, within 10 seconds. Answers at once; the results are read with GET. ' +
        'If an examination is running, that one is returned.',
      response: ExaminationSchema,
      status: 202,
      handle: async () => runToApi(runs.start()),
    }),
    adminRoute({
      method: 'GET',
      path: '/doctor/:id',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'getExamination',
      chapter: 'System',
      summary: 'Get the results of an examination.',
      params: Type.Object({ id: Type.String({ maxLength: 64, description: 'Or `latest`.' }) }),
      response: ExaminationSchema,
      errors: ['not_found'],
      handle: async ({ params }) => runToApi(runs.get(params.id)),
    }),
  ]
}

function runToApi({ id, startedAt, endedAt, checks }: Run): DoctorReport {
  return { id, started_at: isoTime(startedAt), ended_at: isoTimeOrNull(endedAt), checks: [...checks] }
}
