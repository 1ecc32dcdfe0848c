/**
 * Configuration fields of each trigger type, and how they are read from requests.
 *
 * Pure. Throws AppError validation_error with the path of the field.
 */
import Type, { type TSchema } from 'typebox'
import { ConditionsSchema, type Conditions } from '../../audience/segments/conditions.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { refusal } from '../../audience/checks.js'
import { pascalCase } from '../../core/pascal-case.js'
import { placedValidator } from '../../http/validate.js'
import {
  choice,
  configSchema,
  number,
  optional,
  readConfig,
  reference,
  text,
  type Field,
  type Fields,
} from '../steps/config-fields.js'
import { TRIGGER_TYPES, type TriggerConfig, type TriggerType } from './automation.js'

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/

const timeOfDay: Field<string> = {
  default: '09:00',
  expected: 'a time of day, e.g. 09:00',
  schema: Type.String({ pattern: TIME.source }),
  read: value => (typeof value === 'string' && TIME.test(value) ? value : undefined),
}

const anyId = () => optional(reference() as Field<string>)

const validateConditions = placedValidator(ConditionsSchema, 'conditions')

const conditions: Field<Conditions | undefined> = {
  default: undefined,
  expected: 'conditions as in a segment',
  schema: ConditionsSchema,
  read(value, path) {
    if (typeof value !== 'object' || Array.isArray(value)) return undefined
    const found = validateConditions(value, path.split('.'))
    readConditions(found, path)
    return found
  },
}

const FREQUENCIES = ['once', 'every_time'] as const

const messageFields = { campaignId: anyId(), templateId: anyId(), url: optional(text(2_048)) }

const TRIGGER_FIELDS: Readonly<Record<TriggerType, Fields>> = {
  contact_created: {},
  list_joined: { listId: reference() },
  list_left: { listId: reference() },
  tag_added: { tagName: text(200) },
  tag_removed: { tagName: text(200) },
  segment_entered: { segmentId: reference() },
  form_submitted: { formId: anyId() },
  email_opened: messageFields,
  email_clicked: messageFields,
  purchase: { minValue: optional(number(0, -1e12, 1e12)), currency: optional(text(3)) },
  page_viewed: { productId: optional(text(255)) },
  date: {
    field: text(120),
    offsetDays: number(0, -3_651, 3_650),
    time: timeOfDay,
    repeat: choice('none', ['none', 'yearly']),
  },
  manual: {},
}

/** For the API description: one schema per type, e.g. `ListJoinedTriggerConfig`. */
export const TRIGGER_CONFIG_SCHEMAS: readonly TSchema[] = TRIGGER_TYPES.map(type =>
  configSchema(`${pascalCase(type)}TriggerConfig`, {
    ...TRIGGER_FIELDS[type],
    frequency: choice('once', FREQUENCIES),
    conditions,
  }),
)

/** A yearly date with `once` would fire in the first year only. */
function defaultFrequency(
  type: TriggerType,
  input: Readonly<Record<string, unknown>>,
): 'once' | 'every_time' {
  return type === 'date' && input['repeat'] === 'yearly' ? 'every_time' : 'once'
}

/** @throws AppError validation_error */
export function readTriggerConfig(
  type: TriggerType,
  input: Readonly<Record<string, unknown>>,
  path = 'trigger_config',
): TriggerConfig {
  const frequency = choice(defaultFrequency(type, input), FREQUENCIES)
  const config = readConfig({ ...TRIGGER_FIELDS[type], frequency, conditions }, input, path)
  if (type === 'date' && !Number.isInteger(config['offsetDays']))
    throw refusal(`${path}.offsetDays`, 'offsetDays must be a whole number of days')
  return config as unknown as TriggerConfig
}
