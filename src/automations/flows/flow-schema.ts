/** Request and response schemas of automations and their steps. */
import Type, { type Static, type TSchema } from 'typebox'
import { pascalCase } from '../../core/pascal-case.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import {
  Id,
  IdOrNull,
  IntegerOrNull,
  Moment,
  MomentOrNull,
  orNull,
  TextOrNull,
} from '../../http/answer/answer-fields.js'
import {
  AUTOMATION_STATUSES,
  MAX_STEPS,
  STEP_TYPES,
  TRIGGER_TYPES,
  type Automation,
  type Step,
} from './automation.js'
import type { Problem } from './check-flow.js'
import { FAULT_REASONS } from './flow-fault.js'
import { configSchema } from '../steps/config-fields.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { TRIGGER_CONFIG_SCHEMAS } from './trigger-fields.js'
import { maskSecrets } from '../steps/webhook.js'

export const Name = Type.String({ minLength: 1, maxLength: 200 })

const STEP_CONFIG_SCHEMAS = STEP_TYPES.map(type =>
  configSchema(`${pascalCase(type)}StepConfig`, STEP_TYPE[type].fields),
)

/** An object whose fields depend on a type: described as one of the alternatives, validated by `readConfig`. */
const oneOf = (
  alternatives: readonly TSchema[],
  options: { description?: string; examples?: object[] } = {},
) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>(
    Type.Object({}, { ...options, shown: Type.Union([...alternatives]) }),
  )

const StepConfig = oneOf(STEP_CONFIG_SCHEMAS, {
  description:
    'Fields of the `step_type`, in camelCase or snake_case. A field that is absent or null gets its default; a branch that is null ' +
    'continues with the next step. Merge tags work in `tagName`, `attributeValue`, and in the url (after the host, percent-encoded), ' +
    'headers and body of a webhook. `nextStepId` names the step that follows instead of the next one in the list; `end` instead of the id of ' +
    'a step ends the run, in branches too. Secret header values are shown as `********`; send that back to keep them. Keys without ' +
    '`automations:write` see neither headers nor the url after its host.',
  examples: [{ duration: 2, unit: 'days' }],
})

const TriggerFields = oneOf(TRIGGER_CONFIG_SCHEMAS, {
  description:
    'Fields of the `trigger_type`, in camelCase or snake_case. `time` is in the time zone of the workspace. `frequency` defaults to ' +
    '`once`, for a yearly date to `every_time`.',
  examples: [{ frequency: 'once' }],
})

const StepType = Type.Enum([...STEP_TYPES])
const TriggerType = Type.Enum([...TRIGGER_TYPES])
const Position = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_STEPS, description })

export const NewStepBody = Type.Object(
  {
    step_type: StepType,
    config: Type.Optional(StepConfig),
    position: Type.Optional(Position('0-based; default: at the end.')),
  },
  { additionalProperties: false, title: 'NewAutomationStep' },
)

const FirstStep = Type.Object(
  {
    id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'An id of your choice that branches in this request refer to; the step gets a new id.',
      }),
    ),
    step_type: StepType,
    config: Type.Optional(StepConfig),
    position: Type.Optional(Position('0-based; default: its place in the list.')),
  },
  { additionalProperties: false, title: 'FirstAutomationStep' },
)

export const NewAutomationBody = Type.Object(
  {
    name: Name,
    trigger_type: TriggerType,
    trigger_config: Type.Optional(TriggerFields),
    steps: Type.Optional(Type.Array(FirstStep, { maxItems: MAX_STEPS })),
  },
  { additionalProperties: false, title: 'NewAutomation' },
)

export const AutomationChangesBody = Type.Object(
  {
    name: Type.Optional(Name),
    status: Type.Optional(Type.Enum([...AUTOMATION_STATUSES])),
    trigger_type: Type.Optional(TriggerType),
    trigger_config: Type.Optional(TriggerFields),
  },
  { additionalProperties: false, title: 'AutomationChanges' },
)

export const AutomationCopyBody = Type.Object(
  {
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Default: `Copy of` and the name.' }),
    ),
  },
  { additionalProperties: false, title: 'AutomationCopy' },
)

export const StepChangesBody = Type.Object(
  { step_type: Type.Optional(StepType), config: Type.Optional(StepConfig) },
  { additionalProperties: false, title: 'AutomationStepChanges' },
)

export const AllStepsBody = Type.Object(
  {
    steps: Type.Array(
      Type.Object(
        {
          id: Type.String({ minLength: 1, maxLength: 64 }),
          step_type: Type.Optional(StepType),
          config: Type.Optional(StepConfig),
          position: Type.Optional(Position('New position, 0-based.')),
        },
        { additionalProperties: false, title: 'ChangedAutomationStep' },
      ),
      { maxItems: MAX_STEPS },
    ),
  },
  { additionalProperties: false, title: 'AutomationStepsChanges' },
)

const flowFields = {
  trigger_type: Type.Optional(TriggerType),
  trigger_config: Type.Optional(TriggerFields),
  steps: Type.Optional(
    Type.Array(
      Type.Object(
        {
          id: Type.String({
            minLength: 1,
            maxLength: 64,
            description:
              'Id of a step of the automation; any other text stands for a new step, which gets an id.',
          }),
          step_type: StepType,
          config: Type.Optional(StepConfig),
        },
        { additionalProperties: false, title: 'WrittenAutomationStep' },
      ),
      { maxItems: MAX_STEPS, description: 'All steps, in order.' },
    ),
  ),
}

export const FlowBody = Type.Object(
  { name: Type.Optional(Name), ...flowFields },
  { additionalProperties: false, title: 'WrittenAutomation' },
)

export const CheckBody = Type.Object(flowFields, { additionalProperties: false, title: 'AutomationCheck' })

export const DryRunBody = Type.Object(
  {
    contact_id: Type.Optional(
      Type.String({ maxLength: 64, description: 'Id of the contact. Specify this or email.' }),
    ),
    email: Type.Optional(Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' })),
    trigger_data: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'As of a trigger; at most 8 KB as JSON.' }),
    ),
    awaited_events_happen: Type.Optional(
      Type.Boolean({
        description: 'Whether events that steps wait for arrive; default: false, they time out.',
      }),
    ),
    ...flowFields,
  },
  { additionalProperties: false, title: 'AutomationDryRun' },
)

export const ProblemSchema = Type.Object(
  {
    step_id: IdOrNull({ description: 'Null: the trigger or the whole automation.' }),
    position: IntegerOrNull({ description: 'Of the step, 0-based.' }),
    code: Type.Enum([
      'invalid_trigger',
      'invalid_step',
      'missing_step',
      'loop',
      'unreachable_step',
      'no_steps',
      'strange_condition',
    ]),
    severity: Type.Enum(['error', 'warning'], {
      description: 'An error keeps the automation from becoming active.',
    }),
    message: Type.String(),
    reason: orNull(Type.Enum([...FAULT_REASONS]), {
      description:
        'Of `invalid_trigger` and `invalid_step`: `missing` and `unknown` name a value of `field` that is empty or does not exist.',
    }),
    field: TextOrNull({ description: 'Field of the configuration that `reason` is about.' }),
  },
  { title: 'AutomationProblem' },
)

export function problemToApi({ step, code, fault, cause, isWarning }: Problem): Static<typeof ProblemSchema> {
  return {
    step_id: step && step.seq > 0 ? step.id : null,
    position: step?.position ?? null,
    code,
    severity: isWarning ? 'warning' : 'error',
    message: code === 'invalid_trigger' ? `the trigger ${fault}` : fault,
    reason: cause?.reason ?? null,
    field: cause?.field ?? null,
  }
}

export const StepSchema = Type.Object(
  {
    id: Id(),
    step_type: StepType,
    config: oneOf(STEP_CONFIG_SCHEMAS),
    position: Type.Integer(),
  },
  { title: 'AutomationStep' },
)

const automationFields = {
  id: Id(),
  name: Type.String(),
  status: Type.Enum([...AUTOMATION_STATUSES]),
  trigger_type: TriggerType,
  trigger_config: oneOf(TRIGGER_CONFIG_SCHEMAS),
  stats: Type.Object(
    {
      total: Type.Integer(),
      active: Type.Integer(),
      completed: Type.Integer(),
      failed: Type.Integer(),
      paused: Type.Integer(),
      cancelled: Type.Integer(),
    },
    { title: 'AutomationStats', description: 'Number of runs by status.' },
  ),
  version: Type.Integer({ description: 'Counts edits of the trigger and steps, from 1.' }),
  activated_at: MomentOrNull({ description: 'Latest activation.' }),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  updated_at: Moment(),
}

export const AutomationHeadSchema = Type.Object(automationFields, { title: 'AutomationHead' })
export const AutomationSchema = Type.Object(
  {
    ...automationFields,
    steps: Type.Array(StepSchema),
    warnings: Type.Optional(
      Type.Array(ProblemSchema, {
        description:
          'Set when creating or updating, if there are any: what looks like a mistake, such as a step that is never reached, or a condition that compares ' +
          'numbers or dates with an attribute whose declared type, or most of whose values, are something else. As the check finds them.',
      }),
    ),
  },
  { title: 'Automation' },
)

/** @param mayWrite whether the viewer may change automations; if not, more of a webhook is masked */
export function stepToApi(
  { id, type, config, position }: Step,
  { mayWrite }: { readonly mayWrite: boolean },
): Static<typeof StepSchema> {
  const shown = type === 'webhook' ? maskSecrets(config, mayWrite) : config
  return { id, step_type: type, config: shown, position }
}

export function headToApi(automation: Automation): Static<typeof AutomationHeadSchema> {
  const { id, name, status, triggerType, triggerConfig, isSandbox } = automation
  return {
    id,
    name,
    status,
    trigger_type: triggerType,
    trigger_config: triggerConfig,
    stats: statsOf(automation),
    version: automation.version,
    activated_at: isoTimeOrNull(automation.activatedAt),
    is_sandbox: isSandbox,
    created_at: isoTime(automation.createdAt),
    updated_at: isoTime(automation.updatedAt),
  }
}

export function automationToApi(
  automation: Automation,
  steps: readonly Step[],
  viewer: { readonly mayWrite: boolean } = { mayWrite: true },
): Static<typeof AutomationSchema> {
  return { ...headToApi(automation), steps: steps.map(step => stepToApi(step, viewer)) }
}

/** Unfinished runs are paused while the automation is. */
function statsOf({ status, runs }: Automation) {
  const { active: unfinished, completed, failed, cancelled } = runs
  const [active, paused] = status === 'paused' ? [0, unfinished] : [unfinished, 0]
  return { total: unfinished + completed + failed + cancelled, active, completed, failed, paused, cancelled }
}
