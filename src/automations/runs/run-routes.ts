/** Routes of runs: start, list, get and cancel. */
import { refusal } from '../../audience/checks.js'
import { findContact, noSuchContact } from '../../audience/contacts/contacts.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Waiting } from '../../core/waiting.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { WaitingForOrNull, waitingToApi } from '../../http/answer/waiting-for.js'
import { cursorQuery, type Listing, type Page } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import type { FlowParts } from '../automation-parts.js'
import { type Automation, STEP_TYPES, type StepTypeName } from '../flows/automation.js'
import { AutomationParams } from '../flows/automation-routes.js'
import { changeRunCounts } from '../flows/automation-store.js'
import { getAutomation } from '../flows/automations.js'
import { findStepIds } from '../flows/step-store.js'
import { enter, MAX_ENTRIES_PER_HOUR, type Refusal } from './enter.js'
import {
  MAX_STEPS_PER_RUN,
  RUN_STATUSES,
  type Run,
  type RunStatus,
  type StepRecord,
  type StoredStatus,
} from './run.js'
import { endRuns, findRun, listRuns } from './run-store.js'
import { listStepRecords } from './step-record-store.js'
import { readRunState, runWaitsFor } from './run-waits.js'

import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { Address, Id, IdOrNull, Moment, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'

const RunParams = Type.Object({ id: Type.String(), runId: Type.String() })

const CHAPTER = { chapter: 'Automations' }
/** Characters of JSON. */
const MAX_TRIGGER_DATA = 8_192
/** A step may wait, fail four times and be postponed. */
const MAX_RECORDS = 6 * MAX_STEPS_PER_RUN

const TriggerBody = Type.Object(
  {
    contact_id: Type.Optional(
      Type.String({ maxLength: 64, description: 'Id of the contact. Specify this or email.' }),
    ),
    email: Type.Optional(Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' })),
    trigger_data: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'Values for merge tags in emails and web requests; at most 8 KB as JSON.',
      }),
    ),
  },
  { additionalProperties: false, title: 'AutomationTrigger' },
)

const AnyObject = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}))

const runFields = {
  id: Id(),
  automation_id: Id(),
  contact_id: Id(),
  contact_email: Address({ description: 'The address when the run started.' }),
  status: Type.Enum([...RUN_STATUSES]),
  current_step_id: IdOrNull({ description: 'The next step, or the one the run is waiting in.' }),
  trigger_type: Type.String({ description: 'A trigger type, api or move_to_flow.' }),
  trigger_data: AnyObject,
  automation_version: Type.Integer({
    description: 'Version of the automation when the run started; each step is taken as it is by then.',
  }),
  exit_reason: TextOrNull({
    description:
      'One of end_of_flow, moved_to_flow, cancelled, contact_deleted, automation_deleted, step_failed, step_limit.',
  }),
  waiting_for: WaitingForOrNull(
    'Why it does not take its step now, other than that the flow waits: a limit, a pause of the automation, a failed step ...',
  ),
  error: TextOrNull(),
  is_sandbox: Type.Boolean(),
  started_at: Moment(),
  next_run_at: MomentOrNull({ description: 'When the run continues at the latest.' }),
  completed_at: MomentOrNull({ description: 'When the run ended, for any reason.' }),
}

export const RunSchema = Type.Object(runFields, { title: 'AutomationRun' })

const RecordSchema = Type.Object(
  {
    step_id: Id(),
    step_type: Type.Enum([...STEP_TYPES]),
    outcome: Type.Enum(['waiting', 'completed', 'skipped', 'retrying', 'failed']),
    detail: Type.Union([AnyObject, Type.Null()]),
    at: Moment(),
  },
  { title: 'AutomationStepRecord' },
)

export type ShownRun = Static<typeof RunSchema>

const RunDetailsSchema = Type.Object(
  { ...runFields, steps: Type.Array(RecordSchema) },
  { title: 'AutomationRunDetails' },
)

export function runRoutes(parts: FlowParts): Route[] {
  return [...readingRoutes(parts), triggerRoute(parts), cancelRoute(parts)]
}

function readingRoutes(parts: FlowParts): Route[] {
  const { database } = parts
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id/runs',
      access: 'automations:read',
      operationId: 'listAutomationRuns',
      summary: 'List runs of an automation.',
      params: AutomationParams,
      query: Type.Object(
        { ...cursorQuery, status: Type.Optional(Type.Enum([...RUN_STATUSES])) },
        { additionalProperties: false },
      ),
      item: RunSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params, query: { status } }, page) {
        return snapshot(database.slowReader, async db =>
          listShownRuns(parts, db, await getAutomation(db, workspaceId, params.id), status, page),
        )
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id/runs/:runId',
      access: 'automations:read',
      operationId: 'getAutomationRun',
      summary: 'Get a run with its step log.',
      params: RunParams,
      response: RunDetailsSchema,
      errors: ['not_found'],
      handle: ({ principal: { workspaceId }, params }) =>
        snapshot(database.reader, async db => {
          const automation = await getAutomation(db, workspaceId, params.id)
          const run = await getRun(db, automation, params.runId)
          const records = await listStepRecords(db, run.seq, MAX_RECORDS)
          return { ...(await describeRun(parts, db, automation, run)), steps: records.map(recordToApi) }
        }),
    }),
  ]
}

function triggerRoute(parts: FlowParts): Route {
  const { database } = parts
  return route({
    ...CHAPTER,
    method: 'POST',
    path: '/automations/:id/trigger',
    access: 'automations:write',
    operationId: 'triggerAutomation',
    summary: 'Start an automation for a contact.',
    description:
      'Works with any trigger type. Returns 409 if the automation is not active, the contact does not match its conditions, has already ' +
      `entered it (frequency once), or has entered it ${MAX_ENTRIES_PER_HOUR} times in the current hour (frequency every_time).`,
    params: AutomationParams,
    body: TriggerBody,
    example: { email: 'ann@example.com', trigger_data: { plan: 'pro' } },
    response: RunSchema,
    status: 202,
    errors: ['not_found', 'contact_not_found', 'conflict'],
    handle: ({ principal: { workspaceId }, params, body }) =>
      database.write(async tx => {
        const { contact_id: id, email, trigger_data: triggerData = {} } = body
        const automation = await getAutomation(tx.db, workspaceId, params.id)
        if ((id === undefined) === (email === undefined))
          throw refusal('contact_id', 'specify either contact_id or email, not both')
        checkData(triggerData)
        const contact = await findContact(
          tx.db,
          workspaceId,
          id === undefined ? { email: email ?? '' } : { id },
        )
        if (!contact) throw noSuchContact()
        if (automation.status !== 'active')
          throw new AppError('conflict', `the automation is ${automation.status}; activate it first`)
        const entrant = { contactId: contact.id, triggerData }
        const [entry] = await enter(parts, tx, automation, [entrant], { triggerType: 'api' })
        if (entry?.runId === undefined) throw refusedEntry(entry?.refusal)
        return describeRun(parts, tx.db, automation, await getRun(tx.db, automation, entry.runId))
      }),
  })
}

function refusedEntry(why: Refusal | undefined): AppError {
  if (why === 'conditions')
    return new AppError('conflict', 'the contact does not match the conditions of the automation')
  if (why === 'too_often')
    return new AppError(
      'conflict',
      `the contact has entered the automation ${MAX_ENTRIES_PER_HOUR} times in the current hour; try again later`,
    )
  return new AppError('conflict', 'the contact has already entered this automation, whose frequency is once')
}

/** @throws AppError validation_error */
export function checkData(data: Readonly<Record<string, unknown>>): void {
  const json = JSON.stringify(data)
  if (json.length > MAX_TRIGGER_DATA)
    throw refusal(
      'trigger_data',
      `trigger_data is ${json.length} characters as JSON; the limit is ${MAX_TRIGGER_DATA}`,
    )
  // PostgreSQL cannot store it.
  if (json.includes('\\u0000')) throw refusal('trigger_data', 'trigger_data contains a NUL character')
}

function cancelRoute(parts: FlowParts): Route {
  const { database, clock } = parts
  return route({
    ...CHAPTER,
    method: 'POST',
    path: '/automations/:id/runs/:runId/cancel',
    access: 'automations:write',
    operationId: 'cancelAutomationRun',
    summary: 'Cancel an active or paused run.',
    description: 'Effects of steps already taken remain. Returns 409 if the run has ended.',
    params: RunParams,
    response: RunSchema,
    errors: ['not_found', 'conflict'],
    handle: ({ principal: { workspaceId }, params }) =>
      database.write(async tx => {
        const automation = await getAutomation(tx.db, workspaceId, params.id)
        const run = await getRun(tx.db, automation, params.runId)
        if (run.endedAt !== null) throw new AppError('conflict', `the run is already ${run.status}`)
        const ending = { status: 'cancelled', exitReason: 'cancelled' } as const
        await endRuns(tx.db, [run.seq], ending, clock.now())
        await changeRunCounts(tx.db, automation.seq, { active: -1, cancelled: 1 })
        return describeRun(parts, tx.db, automation, await getRun(tx.db, automation, run.id))
      }),
  })
}

async function describeRun(parts: FlowParts, db: Queries, automation: Automation, run: Run) {
  const stepIds = await findStepIds(db, run.step === null ? [] : [run.step])
  const state = await readRunState(parts, db, automation)
  return runToApi(run, automation, stepIds, runWaitsFor(run, automation, state))
}

/** @throws AppError not_found */
async function getRun(db: Queries, { seq }: Automation, id: string): Promise<Run> {
  const run = isUuid(id) ? await findRun(db, seq, id.toLowerCase()) : undefined
  if (!run) throw new AppError('not_found', 'the automation has no such run')
  return run
}

/** An unfinished run is paused while its automation is. */
export function statusOf({ status }: Run, automation: Automation): RunStatus {
  return status === 'active' && automation.status === 'paused' ? 'paused' : status
}

/** @param stepIds by number */
export function runToApi(
  run: Run,
  automation: Automation,
  stepIds: ReadonlyMap<number, string>,
  waiting: Waiting | undefined,
): Static<typeof RunSchema> {
  return {
    id: run.id,
    automation_id: automation.id,
    contact_id: run.contactId,
    contact_email: run.contactEmail,
    status: statusOf(run, automation),
    current_step_id: run.endedAt === null && run.step !== null ? (stepIds.get(run.step) ?? null) : null,
    trigger_type: run.triggerType,
    trigger_data: run.triggerData,
    automation_version: run.flowVersion,
    exit_reason: run.exitReason,
    waiting_for: waitingToApi(waiting),
    error: run.error,
    is_sandbox: run.isSandbox,
    started_at: isoTime(run.startedAt),
    next_run_at: isoTimeOrNull(run.dueAt ?? run.parkedDueAt),
    completed_at: isoTimeOrNull(run.endedAt),
  }
}

export function recordToApi({
  stepId,
  stepType,
  outcome,
  detail,
  at,
}: StepRecord): Static<typeof RecordSchema> {
  return { step_id: stepId, step_type: stepType as StepTypeName, outcome, detail, at: isoTime(at) }
}

async function listShownRuns(
  parts: FlowParts,
  db: Queries,
  automation: Automation,
  status: RunStatus | undefined,
  page: Page,
): Promise<Listing<Static<typeof RunSchema>>> {
  const stored = storedStatus(automation, status)
  if (stored === 'none') return { items: [], total: 0, end: undefined }
  const found = await listRuns(db, automation.seq, stored, countOf(automation, stored), page)
  const steps = new Set(found.items.flatMap(({ step }) => (step === null ? [] : [step])))
  const ids = await findStepIds(db, [...steps])
  const state = await readRunState(parts, db, automation)
  const shown = (run: Run) => runToApi(run, automation, ids, runWaitsFor(run, automation, state))
  return { ...found, items: found.items.map(shown) }
}

/** Translates the filter: unfinished runs are all paused or all active, depending on the automation. */
function storedStatus(
  automation: Automation,
  status: RunStatus | undefined,
): StoredStatus | undefined | 'none' {
  const isPaused = automation.status === 'paused'
  if (status === 'paused') return isPaused ? 'active' : 'none'
  return status === 'active' && isPaused ? 'none' : status
}

function countOf({ runs }: Automation, status: StoredStatus | undefined): number {
  return status === undefined ? runs.active + runs.completed + runs.failed + runs.cancelled : runs[status]
}
