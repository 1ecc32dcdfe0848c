/** Routes for automations. */
import Type, { type Static } from 'typebox'
import { given } from '../../core/given.js'
import { snapshot } from '../../db/snapshot.js'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { Tagged } from '../../http/preconditions.js'
import type { Principal } from '../../http/principal.js'
import { mayDo } from '../../http/principal.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { describeUses, forceQuery, type References } from '../../resource/references.js'
import type { FlowParts } from '../automation-parts.js'
import { AUTOMATION_STATUSES, MAX_AUTOMATIONS, MAX_STEPS } from './automation.js'
import { listAutomations } from './automation-store.js'
import {
  automationEtag,
  changeAutomation,
  createAutomation,
  deleteAutomation,
  duplicateAutomation,
  getFlow,
  type Owner,
  type WithSteps,
} from './automations.js'
import { findWarnings } from './condition-warnings.js'
import { readNewSteps } from './edit-steps.js'
import {
  AutomationChangesBody,
  AutomationCopyBody,
  AutomationHeadSchema,
  AutomationSchema,
  automationToApi,
  headToApi,
  NewAutomationBody,
  problemToApi,
} from './flow-schema.js'

export const AutomationParams = Type.Object({ id: Type.String() })

const CHAPTER = { chapter: 'Automations' }

export function ownerOf(principal: Principal): Owner {
  const { workspaceId, isSandbox } = principal
  return { workspaceId, isSandbox, actor: principal.actor }
}

const EXAMPLE = {
  name: 'Welcome',
  trigger_type: 'contact_created',
  trigger_config: { frequency: 'once' },
  steps: [
    { step_type: 'delay', config: { duration: 1, unit: 'days' } },
    { step_type: 'tag', config: { action: 'add', tagName: 'welcomed' } },
  ],
}

const ID = '0192f3a4-5b6c-7d8e-9f01-23456789abcd'
const MOMENT = '2026-01-05T10:00:00.000Z'

export const EXAMPLE_AUTOMATION = {
  id: ID,
  name: 'Welcome',
  status: 'draft',
  trigger_type: 'contact_created',
  trigger_config: { frequency: 'once' },
  stats: { total: 0, active: 0, completed: 0, failed: 0, paused: 0, cancelled: 0 },
  version: 1,
  activated_at: null,
  is_sandbox: false,
  created_at: MOMENT,
  updated_at: MOMENT,
  steps: [
    { id: ID, step_type: 'delay', config: { duration: 1, unit: 'days' }, position: 0 },
    {
      id: '0192f3a4-5b6c-7d8e-9f01-23456789abce',
      step_type: 'tag',
      config: { action: 'add', tagName: 'welcomed' },
      position: 1,
    },
  ],
}

function tagged(
  { automation, steps }: WithSteps,
  viewer?: { readonly mayWrite: boolean },
): Tagged<Static<typeof AutomationSchema>> {
  return new Tagged(automationToApi(automation, steps, viewer), automationEtag(automation, steps))
}

/** The answer to whoever saved it. */
export async function savedAutomation(
  parts: FlowParts,
  { automation, steps }: WithSteps,
): Promise<Tagged<Static<typeof AutomationSchema>>> {
  const warnings = (await findWarnings(parts, automation, steps)).map(problemToApi)
  // Otherwise the answer, and with it the ETag, is that of GET.
  const found = warnings.length === 0 ? {} : { warnings }
  return new Tagged({ ...automationToApi(automation, steps), ...found }, automationEtag(automation, steps))
}

export function automationRoutes(parts: FlowParts, references: References): Route[] {
  const { database, newId } = parts
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/automations',
      access: 'automations:read',
      operationId: 'listAutomations',
      summary: 'List automations.',
      query: Type.Object(
        { ...cursorQuery, status: Type.Optional(Type.Enum([...AUTOMATION_STATUSES])) },
        { additionalProperties: false },
      ),
      item: AutomationHeadSchema,
      async handle({ principal: { workspaceId }, query: { status } }, page) {
        const filter = status === undefined ? {} : { status }
        const found = await listAutomations(database.slowReader, workspaceId, filter, page)
        return { ...found, items: found.items.map(headToApi) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/automations',
      access: 'automations:write',
      operationId: 'createAutomation',
      hasEtag: true,
      summary: 'Create an automation.',
      description:
        'Creates a draft; set its status to `active` to start it. Steps may have an `id` of your choice, which branches of other steps ' +
        `refer to. Limits: ${MAX_STEPS} steps per automation, ${MAX_AUTOMATIONS} automations per workspace.`,
      body: NewAutomationBody,
      example: EXAMPLE,
      exampleAnswer: EXAMPLE_AUTOMATION,
      response: AutomationSchema,
      status: 201,
      errors: ['limit_reached'],
      async handle({ principal, body }) {
        const { name, trigger_type: triggerType, trigger_config: triggerConfig = {} } = body
        const steps = readNewSteps(body.steps ?? [], newId)
        const flow = { name, triggerType, triggerConfig, steps }
        return savedAutomation(parts, await createAutomation(parts, ownerOf(principal), flow))
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/automations/:id/duplicate',
      access: 'automations:write',
      operationId: 'duplicateAutomation',
      hasEtag: true,
      summary: 'Duplicate an automation.',
      description:
        'Creates a draft with the same trigger and steps. Steps get new ids and branches lead to the new steps; references to lists, tags, ' +
        'templates and other automations stay the same, and so do stored secrets of webhooks. Runs are not copied.',
      params: AutomationParams,
      body: AutomationCopyBody,
      isBodyOptional: true,
      example: { name: 'Welcome, second version' },
      exampleAnswer: { ...EXAMPLE_AUTOMATION, name: 'Welcome, second version' },
      response: AutomationSchema,
      status: 201,
      location: ({ id }: Static<typeof AutomationSchema>) => `/automations/${id}`,
      errors: ['not_found', 'limit_reached'],
      async handle({ principal, params, body }) {
        return savedAutomation(
          parts,
          await duplicateAutomation(parts, ownerOf(principal), params.id, body.name),
        )
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id',
      access: 'automations:read',
      operationId: 'getAutomation',
      hasEtag: true,
      summary: 'Get an automation.',
      description:
        'The `ETag` covers everything shown. With `If-Match`, only name, status, trigger and steps count, not `stats`.',
      params: AutomationParams,
      exampleAnswer: EXAMPLE_AUTOMATION,
      response: AutomationSchema,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const flow = await snapshot(database.reader, db => getFlow(db, principal.workspaceId, params.id))
        return tagged(flow, { mayWrite: mayDo(principal, 'automations:write') })
      },
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/automations/:id',
      access: 'automations:write',
      operationId: 'updateAutomation',
      hasEtag: true,
      checksEtag: true,
      summary: 'Update, activate or pause an automation.',
      description:
        'Status changes: draft to active, active to paused, paused to active. Returns 409 for any other change, if something the ' +
        'automation refers to does not exist, if it sends mail and the workspace has no valid sender, or if steps form a loop without a ' +
        'delay or wait. Events before the activation start no runs. Runs of a paused automation are paused; overdue ones continue when it is active again. The trigger can be ' +
        'changed only while the automation is not active.',
      params: AutomationParams,
      body: AutomationChangesBody,
      example: { name: 'Welcome' },
      exampleAnswer: EXAMPLE_AUTOMATION,
      response: AutomationSchema,
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, body, precondition }) {
        const { name, status, trigger_type: triggerType, trigger_config: triggerConfig } = body
        const changes = given({ name, status, triggerType, triggerConfig })
        const owner = ownerOf(principal)
        return savedAutomation(parts, await changeAutomation(parts, owner, params.id, changes, precondition))
      },
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/automations/:id',
      access: 'automations:write',
      operationId: 'deleteAutomation',
      checksEtag: true,
      summary: 'Delete an automation and cancel its runs.',
      description: describeUses('automation', 'another active automation'),
      params: AutomationParams,
      query: forceQuery,
      response: Done,
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, query, precondition }) {
        const check = query.force === true ? undefined : references
        await deleteAutomation(parts, ownerOf(principal), params.id, check, precondition)
        return DONE
      },
    }),
  ]
}
