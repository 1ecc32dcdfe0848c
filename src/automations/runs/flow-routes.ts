/** Routes of the editor: replace a flow, check it, try it on a contact, and count runs by step. */
import Type, { type Static } from 'typebox'
import { refusal } from '../../audience/checks.js'
import { findContact, noSuchContact } from '../../audience/contacts/contacts.js'
import { given } from '../../core/given.js'
import { isoTime } from '../../core/moments.js'
import { snapshot } from '../../db/snapshot.js'
import { Address, Id, IdOrNull, Moment } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import type { FlowParts } from '../automation-parts.js'
import { STEP_TYPES } from '../flows/automation.js'
import { AutomationParams, EXAMPLE_AUTOMATION, ownerOf, savedAutomation } from '../flows/automation-routes.js'
import { getFlow } from '../flows/automations.js'
import { findProblems } from '../flows/check-flow.js'
import { findConditionWarnings } from '../flows/condition-warnings.js'
import {
  AutomationSchema,
  CheckBody,
  DryRunBody,
  FlowBody,
  ProblemSchema,
  problemToApi,
} from '../flows/flow-schema.js'
import { readFlow, replaceFlow, type WrittenFlow } from '../flows/replace-flow.js'
import { dayOf, describeDryStep } from './describe-dry-run.js'
import { dryRun, MAX_DRY_STEPS, type DryRun } from './dry-run.js'
import { checkData } from './run-routes.js'
import { countRunsAt, findPathCounts } from './step-count-store.js'

const CHAPTER = { chapter: 'Automations' }
const [EXAMPLE_STEP] = EXAMPLE_AUTOMATION.steps
const EXAMPLE_ID = EXAMPLE_AUTOMATION.id

const Count = (description: string) => Type.Integer({ description })

const CountsSchema = Type.Object(
  {
    steps: Type.Array(
      Type.Object(
        {
          step_id: Id(),
          waiting: Count('Unfinished runs at the step now.'),
          passed: Count('Runs that left the step, ever, skipped ones included.'),
          skipped: Count('Of these, how many it did nothing for.'),
          failed: Count('Runs that ended here because the step failed.'),
          paths: Type.Object(
            {
              next: Type.Integer(),
              yes: Type.Integer(),
              no: Type.Integer(),
              event: Type.Integer(),
              timeout: Type.Integer(),
            },
            {
              title: 'AutomationPathCounts',
              description:
                'How many left on each path: `yes` and `no` of a condition, `event` and `timeout` of a wait, `next` of all others.',
            },
          ),
        },
        { title: 'AutomationStepCounts' },
      ),
    ),
  },
  { title: 'AutomationCounts' },
)

const CheckAnswer = Type.Object({ problems: Type.Array(ProblemSchema) }, { title: 'AutomationCheckResult' })

const PATHS = ['next', 'yes', 'no', 'event', 'timeout'] as const

const DryRunAnswer = Type.Object(
  {
    contact_id: Id(),
    contact_email: Address(),
    would_enter: Type.Boolean(),
    refusal: Type.Union([Type.Enum(['conditions', 'once', 'too_often']), Type.Null()], {
      description:
        'Why the contact would not enter: the conditions of the trigger, it was in before, or too often. The steps tell what would ' +
        'happen if it did.',
    }),
    started_at: Moment(),
    ends_at: Moment(),
    exit_reason: Type.Enum(['end_of_flow', 'moved_to_flow', 'step_failed', 'step_limit'], {
      description: `step_limit: not followed beyond ${MAX_DRY_STEPS} steps.`,
    }),
    steps: Type.Array(
      Type.Object(
        {
          step_id: IdOrNull({ description: 'Null: a step that is not stored.' }),
          position: Type.Integer(),
          step_type: Type.Enum([...STEP_TYPES]),
          day: Type.Integer({ description: 'Day of the run, from 1.' }),
          at: Moment(),
          outcome: Type.Enum(['completed', 'skipped', 'failed']),
          path: Type.Union([Type.Enum([...PATHS]), Type.Null()], { description: 'Null: the run ends here.' }),
          detail: Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({})),
          text: Type.String({ description: 'In plain English.' }),
        },
        { title: 'AutomationDryStep' },
      ),
    ),
  },
  { title: 'AutomationDryRunResult' },
)

const MOMENT = EXAMPLE_AUTOMATION.created_at

export function flowRoutes(parts: FlowParts): Route[] {
  return [replaceRoute(parts), checkRoute(parts), dryRunRoute(parts), countsRoute(parts)]
}

type Body = Static<typeof FlowBody>

function writtenFlow({
  name,
  trigger_type: triggerType,
  trigger_config: triggerConfig,
  steps,
}: Body): WrittenFlow {
  return given({ name, triggerType, triggerConfig, steps })
}

function replaceRoute(parts: FlowParts): Route {
  return route({
    ...CHAPTER,
    method: 'PUT',
    path: '/automations/:id/flow',
    access: 'automations:write',
    operationId: 'updateAutomationFlow',
    hasEtag: true,
    checksEtag: true,
    summary: 'Replace name, trigger and steps at once.',
    description:
      'All or nothing; parts that are left out stay. Steps whose id is given stay the same step, with runs at them; others are new; ' +
      'steps that are not listed are deleted, and runs at them continue where they led to. Configs are complete: a field that is left ' +
      'out gets its default. An active automation takes only steps without faults (409), and no other trigger.',
    params: AutomationParams,
    body: FlowBody,
    example: {
      name: 'Welcome',
      steps: [
        { id: EXAMPLE_STEP?.id, step_type: 'delay', config: { duration: 1, unit: 'days' } },
        { id: 'new', step_type: 'tag', config: { action: 'add', tagName: 'welcomed' } },
      ],
    },
    exampleAnswer: EXAMPLE_AUTOMATION,
    response: AutomationSchema,
    errors: ['not_found', 'conflict'],
    async handle({ principal, params, body, precondition }) {
      const owner = ownerOf(principal)
      return savedAutomation(
        parts,
        await replaceFlow(parts, owner, params.id, writtenFlow(body), precondition),
      )
    },
  })
}

function checkRoute(parts: FlowParts): Route {
  const { reader } = parts.database
  return route({
    ...CHAPTER,
    method: 'POST',
    path: '/automations/:id/check',
    access: 'automations:write',
    operationId: 'checkAutomation',
    summary: 'Find what is wrong with an automation.',
    description:
      'Checks what activation checks, and warns of steps that are never reached and of conditions that look like mistakes, as segments ' +
      'do (`warnings`). With a body, checks that trigger and these steps ' +
      'instead of the stored ones; nothing is stored.',
    params: AutomationParams,
    body: CheckBody,
    isBodyOptional: true,
    example: { steps: [{ id: 'new', step_type: 'email', config: { subject: 'Hello' } }] },
    exampleAnswer: {
      problems: [
        {
          step_id: null,
          position: 0,
          code: 'invalid_step',
          severity: 'error',
          message: 'has no templateId',
          reason: 'missing',
          field: 'templateId',
        },
      ],
    },
    response: CheckAnswer,
    errors: ['not_found'],
    async handle({ principal: { workspaceId }, params, body }) {
      const stored = await snapshot(reader, db => getFlow(db, workspaceId, params.id))
      const { automation, steps } = readFlow(stored.automation, stored.steps, writtenFlow(body), parts.newId)
      const problems = await findProblems(parts, reader, automation, steps)
      const warnings = await findConditionWarnings(parts, automation, steps, problems)
      return { problems: [...problems, ...warnings].map(problemToApi) }
    },
  })
}

function dryRunRoute(parts: FlowParts): Route {
  const { reader } = parts.database
  return route({
    ...CHAPTER,
    method: 'POST',
    path: '/automations/:id/dry-run',
    access: 'automations:write',
    operationId: 'previewAutomationRun',
    summary: 'Tell what an automation would do for a contact.',
    description:
      'Nothing is sent or changed. Conditions see what earlier steps would change. Web requests are not sent and count as answered. ' +
      'With a trigger or steps in the body, these are tried instead of the stored ones. Works in any status.',
    params: AutomationParams,
    body: DryRunBody,
    example: { email: 'ann@example.com', trigger_data: { plan: 'pro' } },
    exampleAnswer: {
      contact_id: EXAMPLE_ID,
      contact_email: 'ann@example.com',
      would_enter: true,
      refusal: null,
      started_at: MOMENT,
      ends_at: '2026-01-06T10:00:00.000Z',
      exit_reason: 'end_of_flow',
      steps: [
        {
          step_id: EXAMPLE_ID,
          position: 0,
          step_type: 'delay',
          day: 1,
          at: MOMENT,
          outcome: 'completed',
          path: 'next',
          detail: { until: '2026-01-06T10:00:00.000Z' },
          text: 'day 1: waits 1 days',
        },
      ],
    },
    response: DryRunAnswer,
    errors: ['not_found', 'contact_not_found'],
    async handle({ principal: { workspaceId }, params, body }) {
      const {
        contact_id: id,
        email,
        trigger_data: triggerData = {},
        awaited_events_happen: happen,
        ...flow
      } = body
      const stored = await snapshot(reader, db => getFlow(db, workspaceId, params.id))
      if ((id === undefined) === (email === undefined))
        throw refusal('contact_id', 'specify either contact_id or email, not both')
      checkData(triggerData)
      const contact = await findContact(
        reader,
        workspaceId,
        id === undefined ? { email: email ?? '' } : { id },
      )
      if (!contact) throw noSuchContact()
      const { automation, steps } = readFlow(stored.automation, stored.steps, writtenFlow(flow), parts.newId)
      const doEventsHappen = happen === true
      const result = await dryRun(parts, { automation, steps, contact, triggerData, doEventsHappen })
      return { contact_id: contact.id, contact_email: contact.email, ...dryRunToApi(result) }
    },
  })
}

function dryRunToApi(result: DryRun) {
  const { refusal: why } = result
  return {
    would_enter: why === undefined,
    refusal: why === undefined || why === 'no_contact' ? null : why,
    started_at: isoTime(result.startedAt),
    ends_at: isoTime(result.endsAt),
    exit_reason: result.exitReason,
    steps: result.steps.map((one, index) => ({
      step_id: one.step.seq > 0 ? one.step.id : null,
      position: one.step.position,
      step_type: one.step.type,
      day: dayOf(result, one.at),
      at: isoTime(one.at),
      outcome: one.outcome,
      path: one.path,
      detail: one.detail,
      text: describeDryStep(result, one, result.steps[index - 1]),
    })),
  }
}

function countsRoute({ database }: FlowParts): Route {
  return route({
    ...CHAPTER,
    method: 'GET',
    path: '/automations/:id/step-counts',
    access: 'automations:read',
    operationId: 'getAutomationStepCounts',
    summary: 'Count the runs at each step, and on each path.',
    description: 'Counts of runs that passed stay when old runs are deleted.',
    params: AutomationParams,
    exampleAnswer: {
      steps: [
        {
          step_id: EXAMPLE_ID,
          waiting: 12,
          passed: 340,
          skipped: 0,
          failed: 0,
          paths: { next: 340, yes: 0, no: 0, event: 0, timeout: 0 },
        },
      ],
    },
    response: CountsSchema,
    errors: ['not_found'],
    async handle({ principal: { workspaceId }, params }) {
      const { steps, waiting, counts } = await snapshot(database.slowReader, async db => {
        const { steps } = await getFlow(db, workspaceId, params.id)
        const seqs = steps.map(step => step.seq)
        return { steps, waiting: await countRunsAt(db, seqs), counts: await findPathCounts(db, seqs) }
      })
      return {
        steps: steps.map(step => {
          const {
            skipped = 0,
            failed = 0,
            next = 0,
            yes = 0,
            no = 0,
            event = 0,
            timeout = 0,
          } = counts.get(step.seq) ?? {}
          return {
            step_id: step.id,
            waiting: waiting.get(step.seq) ?? 0,
            passed: skipped + next + yes + no + event + timeout,
            skipped,
            failed,
            paths: { next: next + skipped, yes, no, event, timeout },
          }
        }),
      }
    },
  })
}
