/**
 * What each type of trigger may say of itself, as requests give it and as it is kept.
 *
 * Called by routes and by whoever follows events. Pure. Fails: AppError validation_error with the path of the field.
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

/** Times of day, 00:00 to 23:59. */
const TIME = /^([01]\d|2[0-3]):[0-5]\d$/

const timeOfDay: Field<string> = {
  usual: '09:00',
  what: 'a time of day, e.g. 09:00',
  schema: Type.String({ pattern: TIME.source }),
  read: value => (typeof value === 'string' && TIME.test(value) ? value : undefined),
}

const anyId = () => optional(reference() as Field<string>)

const validateConditions = placedValidator(ConditionsSchema, 'conditions')

const conditions: Field<Conditions | undefined> = {
  usual: undefined,
  what: 'conditions as those of a segment',
  schema: ConditionsSchema,
  read(value, path) {
    if (typeof value !== 'object' || Array.isArray(value)) return undefined
    const found = validateConditions(value, path.split('.'))
    readConditions(found, path)
    return found
  },
}

const FREQUENCIES = ['once', 'every_time'] as const

const aboutMail = { campaignId: anyId(), templateId: anyId(), url: optional(text(2_048)) }

const OWN: Readonly<Record<TriggerType, Fields>> = {
  contact_created: {},
  list_joined: { listId: reference() },
  list_left: { listId: reference() },
  tag_added: { tagName: text(200) },
  tag_removed: { tagName: text(200) },
  segment_entered: { segmentId: reference() },
  form_submitted: { formId: anyId() },
  email_opened: aboutMail,
  email_clicked: aboutMail,
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

/** For the description of the API: one schema for each type, e.g. `ListJoinedTriggerConfig`. */
export const TRIGGER_CONFIG_SCHEMAS: readonly TSchema[] = TRIGGER_TYPES.map(type =>
  configSchema(`${pascalCase(type)}TriggerConfig`, {
    ...OWN[type],
    frequency: choice('once', FREQUENCIES),
    conditions,
  }),
)

/** Of a date that comes every year: once would be this year only. */
function usualFrequency(type: TriggerType, said: Readonly<Record<string, unknown>>): 'once' | 'every_time' {
  return type === 'date' && said['repeat'] === 'yearly' ? 'every_time' : 'once'
}

/** @throws AppError validation_error */
export function readTriggerConfig(
  type: TriggerType,
  said: Readonly<Record<string, unknown>>,
  path = 'trigger_config',
): TriggerConfig {
  const frequency = choice(usualFrequency(type, said), FREQUENCIES)
  const config = readConfig({ ...OWN[type], frequency, conditions }, said, path)
  if (type === 'date' && !Number.isInteger(config['offsetDays']))
    throw refusal(`${path}.offsetDays`, 'offsetDays must be a whole number of days')
  return config as unknown as TriggerConfig
}
