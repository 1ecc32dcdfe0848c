/** Routes of the steps of an automation. */
import Type, { type Static } from 'typebox'
import { Done } from '../../http/answer/answer-fields.js'
import { mayDo } from '../../http/principal.js'
import { route, type Route } from '../../http/route.js'
import type { FlowParts } from '../automation-parts.js'
import { AutomationParams, EXAMPLE_AUTOMATION } from './automation-routes.js'
import { MOST_STEPS } from './automation.js'
import { mustFindAutomation, mustFindUnchanged } from './automations.js'
import { addStep, changeSteps, mustFindStep, removeStep } from './edit-steps.js'
import { AllStepsBody, NewStepBody, StepChangesBody, StepSchema, stepToApi } from './flow-schema.js'
import { findSteps } from './step-store.js'

const StepParams = Type.Object({ id: Type.String(), stepId: Type.String() })

const CHAPTER = { chapter: 'Automations' }
const [EXAMPLE_STEP] = EXAMPLE_AUTOMATION.steps

/** Of the routes that need automations:write. */
const WRITER = { mayWrite: true }

export function stepRoutes(parts: FlowParts): Route[] {
  const { database, newId, clock } = parts
  return [
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/automations/:id/steps',
      access: 'automations:write',
      operationId: 'createAutomationStep',
      checksEtag: true,
      summary: 'Add a step, at the end or at a position.',
      description: `Steps from there on move back by one. An automation has at most ${MOST_STEPS}.`,
      params: AutomationParams,
      body: NewStepBody,
      example: { step_type: 'delay', config: { duration: 1, unit: 'days' } },
      exampleAnswer: EXAMPLE_STEP,
      response: StepSchema,
      status: 201,
      location: (step: Static<typeof StepSchema>, { id }: Static<typeof AutomationParams>) =>
        `/automations/${id}/steps/${step.id}`,
      errors: ['not_found', 'limit_reached'],
      handle: ({ principal: { workspaceId }, params, body, precondition }) =>
        database.write(async tx => {
          const { seq } = await mustFindUnchanged(tx.db, workspaceId, params.id, precondition)
          return stepToApi(await addStep(tx.db, seq, body, newId), WRITER)
        }),
    }),
    route({
      ...CHAPTER,
      method: 'PUT',
      path: '/automations/:id/steps',
      access: 'automations:write',
      operationId: 'updateAutomationSteps',
      checksEtag: true,
      summary: 'Change or reorder several steps at once, all or none.',
      description:
        'Steps that are not named stay as they are, in their order, around those that are given a position. Of a config only the fields ' +
        'given change; a step that gets another type begins with the defaults of that. It answers all steps.',
      params: AutomationParams,
      body: AllStepsBody,
      example: { steps: [{ id: EXAMPLE_STEP?.id, config: { duration: 1, unit: 'days' }, position: 0 }] },
      exampleAnswer: EXAMPLE_AUTOMATION.steps,
      response: Type.Array(StepSchema),
      errors: ['not_found'],
      handle: ({ principal: { workspaceId }, params, body, precondition }) =>
        database.write(async tx => {
          const { seq } = await mustFindUnchanged(tx.db, workspaceId, params.id, precondition)
          return (await changeSteps(tx.db, seq, body.steps, at => `steps.${at}.`)).map(step =>
            stepToApi(step, WRITER),
          )
        }),
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/automations/:id/steps/:stepId',
      access: 'automations:read',
      operationId: 'getAutomationStep',
      summary: 'Get a step of an automation.',
      params: StepParams,
      exampleAnswer: EXAMPLE_STEP,
      response: StepSchema,
      errors: ['not_found'],
      async handle({ principal, params: { id, stepId } }) {
        const { seq } = await mustFindAutomation(database.reader, principal.workspaceId, id)
        const step = mustFindStep(await findSteps(database.reader, seq), stepId)
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
      summary: 'Change the type of a step, or fields of its config.',
      params: StepParams,
      body: StepChangesBody,
      example: { config: { duration: 1, unit: 'days' } },
      exampleAnswer: EXAMPLE_STEP,
      response: StepSchema,
      errors: ['not_found'],
      handle: ({ principal: { workspaceId }, params: { id, stepId }, body, precondition }) =>
        database.write(async tx => {
          const { seq } = await mustFindUnchanged(tx.db, workspaceId, id, precondition)
          const steps = await changeSteps(tx.db, seq, [{ ...body, id: stepId }], () => '')
          const step = steps.find(one => one.id === stepId.toLowerCase())
          if (!step) throw new Error('a step that was changed is gone')
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
      summary: 'Take a step out; the others close up.',
      description: 'Runs that wait in it go on with the one after it, and so does what led to it.',
      params: StepParams,
      response: Done,
      errors: ['not_found'],
      handle: ({ principal: { workspaceId }, params: { id, stepId }, precondition }) =>
        database.write(async tx => {
          const { seq } = await mustFindUnchanged(tx.db, workspaceId, id, precondition)
          await removeStep(tx.db, seq, stepId, clock.now())
          tx.onCommit(parts.wakeRunner)
          return { success: true as const }
        }),
    }),
  ]
}
