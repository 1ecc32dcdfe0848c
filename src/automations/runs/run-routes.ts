/** Routes of runs: starting one by hand, looking at them, and ending one. */
import Type from 'typebox'
import { refusal } from '../../audience/checks.js'
import { findContact, noSuchContact } from '../../audience/contacts/contacts.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { AutomationParams } from '../flows/automation-routes.js'
import { changeRunCounts } from '../flows/automation-store.js'
import { mustFindAutomation } from '../flows/automations.js'
import { findStepIds } from '../flows/step-store.js'
import { enter, MOST_AN_HOUR, type Refusal } from './enter.js'
import { MOST_STEPS_OF_A_RUN, RUN_STATUSES, type Run } from './run.js'
import { recordToApi, RunDetailsSchema, RunSchema, runToApi, TriggerBody } from './run-schema.js'
import { endRuns, findRun } from './run-store.js'
import { shownRuns } from './shown-runs.js'
import { listRecords } from './step-log-store.js'

const RunParams = Type.Object({ id: Type.String(), runId: Type.String() })

const CHAPTER = { chapter: 'Automations' }
/** Characters of JSON. */
const MOST_DATA = 8_192
/** Of a step: it waits, fails four times and may be put off often. */
const MOST_RECORDS = 6 * MOST_STEPS_OF_A_RUN

export function runRoutes(parts: FlowParts): Route[] {
  return [...readingRoutes(parts), triggerRoute(parts), cancelRoute(parts)]
}

function readingRoutes({ database }: FlowParts): Route[] {
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id/runs',
      access: 'automations:read',
      operationId: 'listAutomationRuns',
      summary: 'Runs of an automation, newest first.',
      params: AutomationParams,
      query: Type.Object(
        { ...cursorQuery, status: Type.Optional(Type.Enum([...RUN_STATUSES])) },
        { additionalProperties: false },
      ),
      item: RunSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params, query: { status } }, page) {
        const automation = await mustFindAutomation(database.reader, workspaceId, params.id)
        return shownRuns(database.slowReader, automation, status, page)
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id/runs/:runId',
      access: 'automations:read',
      operationId: 'getAutomationRun',
      summary: 'One run, with what became of each step.',
      params: RunParams,
      response: RunDetailsSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        const { reader } = database
        const automation = await mustFindAutomation(reader, workspaceId, params.id)
        const run = await mustFindRun(reader, automation, params.runId)
        const records = await listRecords(reader, run.seq, MOST_RECORDS)
        return { ...(await shownRun(reader, automation, run)), steps: records.map(recordToApi) }
      },
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
    summary: 'Let a contact enter an active automation, whatever its trigger is.',
    description:
      'One that is not active is a 409, as is a contact whom its conditions do not mean, or who has been in it where its frequency is ' +
      `once, or ${MOST_AN_HOUR} times in this hour where it is every_time.`,
    params: AutomationParams,
    body: TriggerBody,
    example: { email: 'ann@example.com', trigger_data: { plan: 'pro' } },
    response: RunSchema,
    status: 202,
    errors: ['not_found', 'contact_not_found', 'conflict'],
    handle: ({ principal: { workspaceId }, params, body }) =>
      database.write(async tx => {
        const { contact_id: id, email, trigger_data: triggerData = {} } = body
        const automation = await mustFindAutomation(tx.db, workspaceId, params.id)
        if ((id === undefined) === (email === undefined))
          throw refusal('contact_id', 'give either contact_id or email')
        checkData(triggerData)
        const contact = await findContact(
          tx.db,
          workspaceId,
          id === undefined ? { email: email ?? '' } : { id },
        )
        if (!contact) throw noSuchContact()
        if (automation.status !== 'active')
          throw new AppError('conflict', `the automation is ${automation.status}: nobody can enter it`)
        const entrant = { contactId: contact.id, triggerData }
        const [entry] = await enter(parts, tx, automation, [entrant], { triggerType: 'api' })
        if (entry?.runId === undefined) throw refusedEntry(entry?.refusal)
        return shownRun(tx.db, automation, await mustFindRun(tx.db, automation, entry.runId))
      }),
  })
}

function refusedEntry(why: Refusal | undefined): AppError {
  if (why === 'conditions')
    return new AppError('conflict', 'the contact does not meet the conditions of the automation')
  if (why === 'too_often')
    return new AppError(
      'conflict',
      `the contact has entered the automation ${MOST_AN_HOUR} times in this hour`,
    )
  return new AppError('conflict', 'the contact has been in the automation, which everybody enters once')
}

/** @throws AppError validation_error */
function checkData(data: Readonly<Record<string, unknown>>): void {
  const json = JSON.stringify(data)
  if (json.length > MOST_DATA) throw refusal('trigger_data', 'trigger_data must have at most 8 KB as JSON')
  // PostgreSQL keeps it in no text, and no mail has it.
  if (json.includes('\\u0000')) throw refusal('trigger_data', 'trigger_data contains a NUL character')
}

function cancelRoute({ database, clock }: FlowParts): Route {
  return route({
    ...CHAPTER,
    method: 'POST',
    path: '/automations/:id/runs/:runId/cancel',
    access: 'automations:write',
    operationId: 'cancelAutomationRun',
    summary: 'End a run that is active or paused.',
    description: 'What it has done stays done. One that is at its end is a 409.',
    params: RunParams,
    response: RunSchema,
    errors: ['not_found', 'conflict'],
    handle: ({ principal: { workspaceId }, params }) =>
      database.write(async tx => {
        const automation = await mustFindAutomation(tx.db, workspaceId, params.id)
        const run = await mustFindRun(tx.db, automation, params.runId)
        if (run.endedAt !== null) throw new AppError('conflict', `the run is ${run.status} already`)
        const ending = { status: 'cancelled', exitReason: 'cancelled' } as const
        await endRuns(tx.db, [run.seq], ending, clock.now())
        await changeRunCounts(tx.db, automation.seq, { active: -1, cancelled: 1 })
        return shownRun(tx.db, automation, await mustFindRun(tx.db, automation, run.id))
      }),
  })
}

async function shownRun(db: Queries, automation: Automation, run: Run) {
  return runToApi(run, automation, await findStepIds(db, run.step === null ? [] : [run.step]))
}

/** @throws AppError not_found */
async function mustFindRun(db: Queries, { seq }: Automation, id: string): Promise<Run> {
  const run = isUuid(id) ? await findRun(db, seq, id.toLowerCase()) : undefined
  if (!run) throw new AppError('not_found', 'the automation has no such run')
  return run
}
