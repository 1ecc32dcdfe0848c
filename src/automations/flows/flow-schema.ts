/** How automations and their steps look in requests and answers. */
import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { Id, Moment, MomentOrNull } from '../../http/answer/answer-fields.js'
import {
  AUTOMATION_STATUSES,
  MOST_STEPS,
  STEP_TYPES,
  TRIGGER_TYPES,
  type Automation,
  type Step,
} from './automation.js'
import { withoutSecrets } from '../steps/secret-headers.js'

export const Name = Type.String({ minLength: 1, maxLength: 200 })

/** Fields of an object that its type decides, which no schema can say of it. */
const Fields = (description: string, example: object) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}, { description, examples: [example] }))

const StepConfig = Fields(
  'By type, in camelCase or snake_case; what is left out has its default. email: templateId (null), subject, previewText (empty). ' +
    'delay: duration (1), unit (days; or minutes, hours, weeks). condition: field, operator (equals; or not_equals, contains, gt, lt, gte, ' +
    'lte), value (empty), trueBranchStepId, falseBranchStepId (null: the next step). tag: action (add; or remove), tagName. ' +
    'add_to_list, remove_from_list: listId (null). update_attribute: attributeName, attributeValue. webhook: url, method (POST; or GET, ' +
    'PUT, PATCH), headers ({}; the values of Authorization, Cookie and whatever is called a key, token, secret or password are shown as ' +
    '********, which keeps them where it is sent back), body. wait_for_event: eventType (email_opened; or email_clicked, purchase, page_viewed), timeoutDays ' +
    '(7), timeoutAction (continue; or skip, branch), timeoutBranch. move_to_flow: targetFlowId, exitCurrentFlow (true).',
  { duration: 2, unit: 'days' },
)

const TriggerFields = Fields(
  'By type, in camelCase or snake_case. list_joined, list_left: listId. tag_added, tag_removed: tagName. segment_entered: segmentId. ' +
    'form_submitted: formId. email_opened, email_clicked: campaignId, templateId, url. purchase: minValue, currency. page_viewed: ' +
    'productId. date: field, offsetDays (0), time (09:00, by the clocks of the workspace), repeat (none; or yearly). All: frequency ' +
    '(once per contact; or every_time, which is usual for a yearly date) and conditions, as those of a segment.',
  { frequency: 'once' },
)

const StepType = Type.Enum([...STEP_TYPES])
const TriggerType = Type.Enum([...TRIGGER_TYPES])
const Position = (description: string) => Type.Integer({ minimum: 0, maximum: MOST_STEPS, description })

export const NewStepBody = Type.Object(
  {
    step_type: StepType,
    config: Type.Optional(StepConfig),
    position: Type.Optional(Position('From 0; at the end where it is left out.')),
  },
  { additionalProperties: false, title: 'NewAutomationStep' },
)

const FirstStep = Type.Object(
  {
    id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          'A name of your own, by which branches of other steps here lead to it; it gets another id.',
      }),
    ),
    step_type: StepType,
    config: Type.Optional(StepConfig),
    position: Type.Optional(Position('Without one it is where it stands in the list.')),
  },
  { additionalProperties: false, title: 'FirstAutomationStep' },
)

export const NewAutomationBody = Type.Object(
  {
    name: Name,
    trigger_type: TriggerType,
    trigger_config: Type.Optional(TriggerFields),
    steps: Type.Optional(Type.Array(FirstStep, { maxItems: MOST_STEPS })),
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
          position: Type.Optional(Position('Where it is to stand, from 0.')),
        },
        { additionalProperties: false, title: 'ChangedAutomationStep' },
      ),
      { maxItems: MOST_STEPS },
    ),
  },
  { additionalProperties: false, title: 'AutomationStepsChanges' },
)

const ShownConfig = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}))

export const StepSchema = Type.Object(
  {
    id: Id(),
    step_type: StepType,
    config: ShownConfig,
    position: Type.Integer(),
  },
  { title: 'AutomationStep' },
)

const automationFields = {
  id: Id(),
  name: Type.String(),
  status: Type.Enum([...AUTOMATION_STATUSES]),
  trigger_type: TriggerType,
  trigger_config: ShownConfig,
  stats: Type.Object(
    {
      total: Type.Integer(),
      active: Type.Integer(),
      completed: Type.Integer(),
      failed: Type.Integer(),
      paused: Type.Integer(),
      cancelled: Type.Integer(),
    },
    { title: 'AutomationStats', description: 'Runs by how they stand.' },
  ),
  activated_at: MomentOrNull({ description: 'When it became active last.' }),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  updated_at: Moment(),
}

export const AutomationHeadSchema = Type.Object(automationFields, { title: 'AutomationHead' })
export const AutomationSchema = Type.Object(
  { ...automationFields, steps: Type.Array(StepSchema) },
  { title: 'Automation' },
)

export function stepToApi({ id, type, config, position }: Step): Static<typeof StepSchema> {
  return { id, step_type: type, config: withoutSecrets(config), position }
}

export function headToApi(automation: Automation): Static<typeof AutomationHeadSchema> {
  const { id, name, status, triggerType, triggerConfig, isSandbox } = automation
  return {
    ...{ id, name, status, trigger_type: triggerType, trigger_config: triggerConfig },
    stats: statsOf(automation),
    activated_at: isoTimeOrNull(automation.activatedAt),
    is_sandbox: isSandbox,
    created_at: isoTime(automation.createdAt),
    updated_at: isoTime(automation.updatedAt),
  }
}

export function automationToApi(
  automation: Automation,
  steps: readonly Step[],
): Static<typeof AutomationSchema> {
  return { ...headToApi(automation), steps: steps.map(stepToApi) }
}

/** Runs stand still while their automation does. */
function statsOf({ status, runs }: Automation) {
  const { active: unfinished, completed, failed, cancelled } = runs
  const [active, paused] = status === 'paused' ? [0, unfinished] : [unfinished, 0]
  return { total: unfinished + completed + failed + cancelled, active, completed, failed, paused, cancelled }
}
