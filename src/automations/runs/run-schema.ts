/** How runs and their logs look in requests and answers. */
import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { Address, Id, IdOrNull, Moment, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { STEP_TYPES, type Automation, type StepTypeName } from '../flows/automation.js'
import { RUN_STATUSES, type Run, type RunStatus, type StepRecord } from './run.js'

export const TriggerBody = Type.Object(
  {
    contact_id: Type.Optional(Type.String({ maxLength: 64, description: 'Either this or email.' })),
    email: Type.Optional(Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' })),
    trigger_data: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'What its mails and web requests are filled from; at most 8 KB as JSON.',
      }),
    ),
  },
  { additionalProperties: false, title: 'AutomationTrigger' },
)

const Shown = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}))

const runFields = {
  id: Id(),
  automation_id: Id(),
  contact_id: Id(),
  contact_email: Address({ description: 'As it was when the run began.' }),
  status: Type.Enum([...RUN_STATUSES]),
  current_step_id: IdOrNull({ description: 'The step that is next, or that it waits in.' }),
  trigger_type: Type.String({ description: 'What started it: a type of trigger, api or move_to_flow.' }),
  trigger_data: Shown,
  exit_reason: TextOrNull({
    description:
      'One of end_of_flow, moved_to_flow, cancelled, contact_deleted, automation_deleted, step_failed, step_limit.',
  }),
  error: TextOrNull(),
  is_sandbox: Type.Boolean(),
  started_at: Moment(),
  next_run_at: MomentOrNull({ description: 'When it goes on at the latest.' }),
  completed_at: MomentOrNull({ description: 'When it came to its end, however that was.' }),
}

export const RunSchema = Type.Object(runFields, { title: 'AutomationRun' })

const RecordSchema = Type.Object(
  {
    step_id: Id(),
    step_type: Type.Enum([...STEP_TYPES]),
    outcome: Type.Enum(['waiting', 'completed', 'skipped', 'retrying', 'failed']),
    detail: Type.Union([Shown, Type.Null()]),
    at: Moment(),
  },
  { title: 'AutomationStepRecord' },
)

export const RunDetailsSchema = Type.Object(
  { ...runFields, steps: Type.Array(RecordSchema) },
  { title: 'AutomationRunDetails' },
)

/** Runs stand still while their automation does. */
export function statusOf({ status }: Run, automation: Automation): RunStatus {
  return status === 'active' && automation.status === 'paused' ? 'paused' : status
}

/** @param stepIds by number */
export function runToApi(
  run: Run,
  automation: Automation,
  stepIds: ReadonlyMap<number, string>,
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
    exit_reason: run.exitReason,
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
