/** Routes for the steps of an automation. */
import Type, { type Static } from 'typebox'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { mayDo, type Principal } from '../../http/principal.js'
import { route, type Route } from '../../http/route.js'
import type { Tx } from '../../db/database.js'
import type { FlowParts } from '../automation-parts.js'
import { AutomationParams, EXAMPLE_AUTOMATION } from './automation-routes.js'
import { MAX_STEPS, type Automation } from './automation.js'
import { raiseVersion } from './automation-store.js'
import { getAutomation, getUnchanged, recordFlowChange } from './automations.js'
import { addStep, changeSteps, getStep, removeStep } from './edit-steps.js'
import { AllStepsBody, NewStepBody, StepChangesBody, StepSchema, stepToApi } from './flow-schema.js'
import { findSteps } from './step-store.js'

const StepParams = Type.Object({ id: Type.String(), stepId: Type.String() })

const CHAPTER = { chapter: 'Automations' }
const [EXAMPLE_STEP] = EXAMPLE_AUTOMATION.steps

/** The viewer in routes that need automations:write. */
const WRITER = { mayWrite: true }

export function stepRoutes(parts: FlowParts): Route[] {
  const { database, newId, clock } = parts
  const record = async (tx: Tx, principal: Principal, automation: Automation, what: string) => {
    const createdAt = clock.now()
    await raiseVersion(tx.db, automation.seq, createdAt)
    await recordFlowChange(tx, principal, createdAt, automation, { details: { steps: what } })
  }
  return [
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/automations/:id/steps',
      access: 'automations:write',
      operationId: 'createAutomationStep',
      checksEtag: true,
      summary: 'Add a step to an automation.',
      description: `Added at the end, or at \`position\`; later steps move back by one. An automation has at most ${MAX_STEPS} steps.`,
      params: AutomationParams,
      body: NewStepBody,
      example: { step_type: 'delay', config: { duration: 1, unit: 'days' } },
      exampleAnswer: EXAMPLE_STEP,
      response: StepSchema,
      status: 201,
      location: (step: Static<typeof StepSchema>, { id }: Static<typeof AutomationParams>) =>
        `/automations/${id}/steps/${step.id}`,
      errors: ['not_found', 'limit_reached'],
      handle: ({ principal, params, body, precondition }) =>
        database.write(async tx => {
          const flow = await getUnchanged(tx.db, principal.workspaceId, params.id, precondition)
          const step = await addStep(tx.db, flow.seq, body, newId)
          await record(tx, principal, flow, 'added')
          return stepToApi(step, WRITER)
        }),
    }),
    route({
      ...CHAPTER,
      method: 'PUT',
      path: '/automations/:id/steps',
      access: 'automations:write',
      operationId: 'updateAutomationSteps',
      checksEtag: true,
      summary: 'Update or reorder several steps.',
      description:
        'All changes apply or none. Steps not listed keep their order around the steps that are given a position. Only the given config ' +
        'fields change; a step that changes its type starts with the defaults of the new type. Returns all steps.',
      params: AutomationParams,
      body: AllStepsBody,
      example: { steps: [{ id: EXAMPLE_STEP?.id, config: { duration: 1, unit: 'days' }, position: 0 }] },
      exampleAnswer: EXAMPLE_AUTOMATION.steps,
      response: Type.Array(StepSchema),
      errors: ['not_found'],
      handle: ({ principal, params, body, precondition }) =>
        database.write(async tx => {
          const flow = await getUnchanged(tx.db, principal.workspaceId, params.id, precondition)
          const steps = await changeSteps(tx.db, flow.seq, body.steps, at => `steps.${at}.`)
          await record(tx, principal, flow, 'changed')
          return steps.map(step => stepToApi(step, WRITER))
        }),
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id/steps/:stepId',
      access: 'automations:read',
      operationId: 'getAutomationStep',
      summary: 'Get a step.',
      params: StepParams,
      exampleAnswer: EXAMPLE_STEP,
      response: StepSchema,
      errors: ['not_found'],
      async handle({ principal, params: { id, stepId } }) {
        const { seq } = await getAutomation(database.reader, principal.workspaceId, id)
        const step = getStep(await findSteps(database.reader, seq), stepId)
        return stepToApi(step, { mayWrite: mayDo(principal, 'automations:write') })
      },
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/automations/:id/steps/:stepId',
      access: 'automations:write',
      operationId: 'updateAutomationStep',
      checksEtag: true,
      summary: 'Update a step.',
      params: StepParams,
      body: StepChangesBody,
      example: { config: { duration: 1, unit: 'days' } },
      exampleAnswer: EXAMPLE_STEP,
      response: StepSchema,
      errors: ['not_found'],
      handle: ({ principal, params: { id, stepId }, body, precondition }) =>
        database.write(async tx => {
          const flow = await getUnchanged(tx.db, principal.workspaceId, id, precondition)
          const steps = await changeSteps(tx.db, flow.seq, [{ ...body, id: stepId }], () => '')
          const step = steps.find(one => one.id === stepId.toLowerCase())
          if (!step) throw new Error('the updated step is missing')
          await record(tx, principal, flow, 'changed')
          return stepToApi(step, WRITER)
        }),
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/automations/:id/steps/:stepId',
      access: 'automations:write',
      operationId: 'deleteAutomationStep',
      checksEtag: true,
      summary: 'Delete a step.',
      description: 'Runs at this step and branches to it continue with the following step.',
      params: StepParams,
      response: Done,
      errors: ['not_found'],
      handle: ({ principal, params: { id, stepId }, precondition }) =>
        database.write(async tx => {
          const flow = await getUnchanged(tx.db, principal.workspaceId, id, precondition)
          await removeStep(tx.db, flow.seq, stepId, clock.now())
          await record(tx, principal, flow, 'deleted')
          tx.onCommit(parts.wakeRunner)
          return DONE
        }),
    }),
  ]
}
