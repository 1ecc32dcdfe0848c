/** The step type `condition`: branches on a rule about the contact. Rules mean the same as in segments. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { attributeOf, readConditions, type Group } from '../../audience/segments/read-conditions.js'
import type { Conditions } from '../../audience/segments/conditions.js'
import { checkConditions } from '../../audience/segments/rule-references.js'
import { findMatching } from '../../audience/segments/audience-query-store.js'
import { choice, reference, text, type ConfigOf, type Field } from './config-fields.js'
import type { Step } from '../flows/automation.js'
import type { Detail, StepType } from './step-type.js'
import { missing } from '../flows/flow-fault.js'

const OPERATORS = ['equals', 'not_equals', 'contains', 'gt', 'lt', 'gte', 'lte'] as const
const MAX_TEXT = 1_000

const value: Field<string | number | boolean> = {
  default: '',
  expected: `a string of at most ${MAX_TEXT} characters, a number, true or false`,
  schema: Type.Union([Type.String({ maxLength: MAX_TEXT }), Type.Number(), Type.Boolean()]),
  read: (input, path) => {
    if (typeof input === 'boolean' || (typeof input === 'number' && Number.isFinite(input))) return input
    return text(MAX_TEXT).read(input, path)
  },
}

const fields = {
  field: text(120),
  operator: choice('equals', OPERATORS),
  value,
  trueBranchStepId: reference(),
  falseBranchStepId: reference(),
}

type ConditionConfig = ConfigOf<typeof fields>

/** @throws AppError validation_error */
function ruleOf(config: ConditionConfig): Group {
  return readConditions(conditionsOf(config))
}

function conditionsOf({ field, operator, value }: ConditionConfig): Conditions {
  return { match: 'all', rules: [{ field, operator, value }] }
}

/** @returns undefined for steps of another type, and without a field */
export function conditionsOfStep({ type, config }: Pick<Step, 'type' | 'config'>): Conditions | undefined {
  const asked = config as ConditionConfig
  return type === 'condition' && asked.field !== '' ? conditionsOf(asked) : undefined
}

/** Characters of a value in the step log. */
const MAX_SHOWN = 200

/** Why the branch was chosen: the rule, and the contact's value if it is a field or attribute of the contact. */
function reasonOf({ field, operator, value }: ConditionConfig, contact: Contact): Detail {
  const actual = valueOf(field, contact)
  return { field, operator, value: shown(value), ...(actual === undefined ? {} : { actual: shown(actual) }) }
}

const OWN_FIELDS: Readonly<Record<string, (contact: Contact) => unknown>> = {
  email: contact => contact.email,
  first_name: contact => contact.firstName,
  last_name: contact => contact.lastName,
  subscribed: contact => contact.subscribed,
  bounced: contact => contact.bounced,
}

/** @returns null if the contact has none, undefined if it is not a value of the contact itself */
function valueOf(field: string, contact: Contact): unknown {
  if (Object.hasOwn(OWN_FIELDS, field)) return OWN_FIELDS[field]?.(contact)
  const name = attributeOf(field)
  if (name === undefined) return undefined
  let found: unknown = contact.attributes
  for (const part of Object.hasOwn(contact.attributes, name) ? [name] : name.split('.'))
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, part)
        ? (found as Readonly<Record<string, unknown>>)[part]
        : null
  return found
}

function shown(value: unknown): unknown {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_SHOWN)
}

export const condition: StepType = {
  name: 'condition',
  fields,
  branches: ['trueBranchStepId', 'falseBranchStepId'],
  async findFault(config, { db, automation }) {
    const asked = config as ConditionConfig
    if (asked.field === '') return missing('field')
    try {
      await checkConditions(db, automation.workspaceId, conditionsOf(asked))
      return undefined
    } catch (error) {
      if (error instanceof AppError)
        return { reason: 'invalid_rule', field: 'field', text: `has an invalid rule: ${error.message}` }
      throw error
    }
  },
  prepare: ({ step }) => {
    const config = step.config as ConditionConfig
    const rule = ruleOf(config)
    return Promise.resolve(async ({ tx, run, contact, now }) => {
      const scope = { workspaceId: run.workspaceId, now }
      const isTrue = (await findMatching(tx.db, rule, scope, [contact.seq])).has(contact.seq)
      const branch = isTrue ? config.trueBranchStepId : config.falseBranchStepId
      return {
        kind: 'done',
        path: isTrue ? 'yes' : 'no',
        detail: { result: isTrue, ...reasonOf(config, contact) },
        ...(branch === null ? {} : { goTo: branch }),
      }
    })
  },
}
