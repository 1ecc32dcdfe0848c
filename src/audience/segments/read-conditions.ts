/**
 * Parses and validates conditions: field, operator, value.
 *
 * Called before conditions are stored, to report mistakes to their author, and before they are compiled. Pure.
 * Fails: AppError validation_error with the rule's path.
 */
import { readDateOrMoment, type DateOrMoment } from '../../core/moments.js'
import { refusal } from '../checks.js'
import { fold } from '../../core/fold.js'
import { isUuid } from '../../core/ids.js'
import { numberOf } from '../contacts/compared-attributes.js'
import {
  isGroup,
  MAX_NESTING,
  OPERATORS,
  type Conditions,
  type Rule,
  type RuleValue,
  type Scalar,
} from './conditions.js'
import type { CampaignField } from './rule-history.js'

export type TextField = 'email' | 'first_name' | 'last_name' | 'bounce_type'
export type MomentField =
  | 'created_at'
  | 'updated_at'
  | 'bounced_at'
  | 'last_opened_at'
  | 'last_clicked_at'
  | 'last_purchase_at'
export type PurchaseField = 'purchase_count' | 'purchase_total'
export type TruthField = 'subscribed' | 'bounced'
export type ThingsField = 'lists' | 'tags'

/** Text operand: a contact field or an attribute. */
export type TextSource = { readonly field: TextField } | { readonly attribute: string }

export type Order = 'lt' | 'lte' | 'gt' | 'gte'

interface MomentValue {
  readonly field: MomentField
  readonly value: DateOrMoment
}

/**
 * A parsed rule. Texts are folded; `isNot` also matches a missing value. A day is one of the workspace's time zone, which is known only when
 * the rule is compiled.
 */
export type Test =
  | {
      readonly kind: 'is_set'
      readonly of: TextSource | { readonly moment: MomentField }
      readonly isNot: boolean
    }
  /** Matches any of the values, as text or number. Only `in` and `contains` match whole items of arrays. */
  | {
      readonly kind: 'text'
      readonly of: TextSource
      readonly how: 'equals' | 'in' | 'contains' | 'starts_with' | 'ends_with'
      readonly values: readonly string[]
      /** Attributes only. With `contains`, the value is also in `values`. */
      readonly numbers: readonly number[]
      readonly isNot: boolean
    }
  | { readonly kind: 'text_order'; readonly of: TextSource; readonly order: Order; readonly value: string }
  | {
      readonly kind: 'number_order'
      readonly attribute: string
      readonly order: Order
      readonly value: number
    }
  /** A day stands for its first moment. */
  | ({ readonly kind: 'moment'; readonly order: Order } & MomentValue)
  /** That moment, or any on that day. */
  | ({ readonly kind: 'moment_is'; readonly isNot: boolean } & MomentValue)
  /** Of moments: within the last `days` times 24 hours. Of dates without a time: today or one of as many days before. */
  | {
      readonly kind: 'within_days'
      readonly of: { readonly moment: MomentField } | { readonly attribute: string }
      readonly days: number
      readonly isNot: boolean
    }
  /** From today to `days` days ahead; `isYearly` ignores the year. */
  | {
      readonly kind: 'in_next_days'
      readonly of: { readonly moment: MomentField } | { readonly attribute: string }
      readonly days: number
      readonly isYearly: boolean
      readonly isNot: boolean
    }
  /** Campaign ids; undefined matches any campaign. */
  | {
      readonly kind: 'campaign'
      readonly field: CampaignField
      readonly ids: readonly string[] | undefined
      readonly isNot: boolean
    }
  | {
      readonly kind: 'purchases'
      readonly field: PurchaseField
      readonly order: Order | 'equals'
      readonly value: number
      readonly isNot: boolean
    }
  /** Undefined matches any product. */
  | { readonly kind: 'product'; readonly products: readonly string[] | undefined; readonly isNot: boolean }
  /** An attribute containing a date. */
  | {
      readonly kind: 'date_order'
      readonly attribute: string
      readonly order: 'lt' | 'gt'
      readonly value: DateOrMoment
    }
  | { readonly kind: 'truth'; readonly field: TruthField; readonly values: readonly boolean[] }
  /** Ids or folded names of lists or tags; undefined matches any. */
  | {
      readonly kind: 'things'
      readonly field: ThingsField
      readonly names: ReadonlySet<string> | undefined
      readonly isNot: boolean
    }

export interface Group {
  readonly isAll: boolean
  readonly parts: readonly (Test | Group)[]
}

const MAX_TESTS = 100
/** In all rules together: each value is a bound parameter. */
const MAX_VALUES = 2_000
const MAX_DAYS = 36_500

const MOMENTS: readonly string[] = [
  'created_at',
  'updated_at',
  'bounced_at',
  'last_opened_at',
  'last_clicked_at',
  'last_purchase_at',
]
const TEXTS: readonly string[] = ['email', 'first_name', 'last_name', 'bounce_type']
const ORDERS: readonly string[] = ['lt', 'lte', 'gt', 'gte']
export const CAMPAIGN_FIELDS: readonly string[] = ['campaign_received', 'campaign_opened', 'campaign_clicked']
const PURCHASE_FIELDS: readonly string[] = ['purchase_count', 'purchase_total']
const OTHERS: readonly string[] = ['subscribed', 'bounced', 'lists', 'tags', 'purchased_product']
const OWN_FIELDS = new Set([...MOMENTS, ...TEXTS, ...CAMPAIGN_FIELDS, ...PURCHASE_FIELDS, ...OTHERS])

/** @param path of the conditions in the request, e.g. `conditions` @throws AppError validation_error */
export function readConditions(conditions: Conditions, path = 'conditions'): Group {
  const bounds = { tests: 0, values: 0 }
  const read = (group: Conditions, place: string, depth: number): Group => {
    if (group.match !== 'all' && group.match !== 'any')
      throw refusal(`${place}.match`, 'match must be all or any')
    if (depth > MAX_NESTING) throw refusal(place, `groups can be nested at most ${MAX_NESTING} deep`)
    const parts = group.rules.map((one, at): Test | Group => {
      const inner = `${place}.rules.${at}`
      refuseMixture(one, inner)
      if (isGroup(one)) return read(one, inner, depth + 1)
      bounds.tests += 1
      bounds.values += Array.isArray(one.value) ? one.value.length : 1
      if (bounds.tests > MAX_TESTS)
        throw refusal(path, `conditions can have at most ${MAX_TESTS} rules in total`)
      if (bounds.values > MAX_VALUES)
        throw refusal(path, `conditions can have at most ${MAX_VALUES} values in total`)
      return readRule(one, inner)
    })
    return { isAll: group.match === 'all', parts }
  }
  return read(conditions, path, 1)
}

/** Rejects objects that mix the fields of a rule and a group, which the schema allows. */
function refuseMixture(one: Partial<Rule> & Partial<Conditions>, place: string): void {
  if (one.rules !== undefined) {
    for (const name of ['field', 'operator', 'value'] as const)
      if (one[name] !== undefined) throw refusal(`${place}.${name}`, `a group must not have ${name}`)
    return
  }
  for (const name of ['field', 'operator'] as const)
    if (one[name] === undefined) throw refusal(`${place}.${name}`, `${name} is required`)
  if (one.match !== undefined) throw refusal(`${place}.match`, 'a rule must not have match')
}

interface Asked {
  readonly rule: Rule
  readonly place: string
  /** Without the prefix `not_`. */
  readonly operator: string
  readonly isNot: boolean
}

/** @returns undefined for a built-in field */
export function attributeOf(field: string): string | undefined {
  if (OWN_FIELDS.has(field)) return undefined
  return field.startsWith('attributes.') ? field.slice('attributes.'.length) : field
}

export function readRule(rule: Rule, place: string): Test {
  const { field } = rule
  if (!(OPERATORS as readonly string[]).includes(rule.operator))
    throw refusal(`${place}.operator`, `operator must be one of ${OPERATORS.join(', ')}`)
  const isNot = /^not_|_not_/.test(rule.operator)
  const asked = { rule, place, isNot, operator: rule.operator.replace(/^not_|(?<=_)not_/, '') }
  if (MOMENTS.includes(field)) return readMomentRule(asked, field as MomentField)
  if (TEXTS.includes(field)) return readTextRule(asked, { field: field as TextField })
  if (field === 'subscribed' || field === 'bounced') return readTruthRule(asked, field)
  if (field === 'lists' || field === 'tags') return readThingsRule(asked, field)
  if (CAMPAIGN_FIELDS.includes(field)) return readCampaignRule(asked, field as CampaignField)
  if (PURCHASE_FIELDS.includes(field)) return readPurchaseRule(asked, field as PurchaseField)
  if (field === 'purchased_product') return readProductRule(asked)
  const attribute = attributeOf(field) ?? ''
  if (attribute === '') throw refusal(`${place}.field`, 'field must name an attribute')
  return readAttributeRule(asked, attribute)
}

function readMomentRule(asked: Asked, field: MomentField): Test {
  const { operator, isNot } = asked
  switch (operator) {
    case 'is_set':
      return { kind: 'is_set', of: { moment: field }, isNot }
    case 'within_days':
      return { kind: 'within_days', of: { moment: field }, days: readDays(asked), isNot }
    case 'in_next_days':
    case 'anniversary_in_next_days':
      return readUpcoming(asked, { moment: field })
    case 'before':
      return { kind: 'moment', field, order: 'lt', value: readDate(asked) }
    case 'after':
      return { kind: 'moment', field, order: 'gt', value: readDate(asked) }
    case 'equals':
      return { kind: 'moment_is', field, value: readDate(asked), isNot }
    default:
      if (ORDERS.includes(operator))
        return { kind: 'moment', field, order: operator as Order, value: readDate(asked) }
      throw unfit(asked)
  }
}

function readUpcoming(asked: Asked, of: { moment: MomentField } | { attribute: string }): Test {
  const { operator, isNot } = asked
  const days = readDays(asked)
  if (!Number.isInteger(days)) throw unfitValue(asked, 'a whole number of days')
  return { kind: 'in_next_days', of, days, isYearly: operator !== 'in_next_days', isNot }
}

function readCampaignRule(asked: Asked, field: CampaignField): Test {
  const { operator, isNot } = asked
  if (operator === 'is_set') return { kind: 'campaign', field, ids: undefined, isNot }
  if (operator !== 'in' && operator !== 'equals') throw unfit(asked)
  const ids = (operator === 'in' ? readValues(asked) : [readOne(asked)]).map(String)
  if (!ids.every(isUuid)) throw unfitValue(asked, 'a campaign id')
  return { kind: 'campaign', field, ids: ids.map(id => id.toLowerCase()), isNot }
}

function readPurchaseRule(asked: Asked, field: PurchaseField): Test {
  const { operator, isNot, rule } = asked
  if (operator === 'is_set')
    return { kind: 'purchases', field: 'purchase_count', order: 'gt', value: 0, isNot }
  if (operator !== 'equals' && !ORDERS.includes(operator)) throw unfit(asked)
  const value = typeof rule.value === 'string' ? numberOf(rule.value) : rule.value
  if (typeof value !== 'number') throw unfitValue(asked, 'a number')
  return { kind: 'purchases', field, order: operator as Order | 'equals', value, isNot }
}

function readProductRule(asked: Asked): Test {
  const { operator, isNot } = asked
  if (operator === 'is_set') return { kind: 'product', products: undefined, isNot }
  if (operator !== 'in' && operator !== 'equals') throw unfit(asked)
  const values = operator === 'in' ? readValues(asked) : [readOne(asked)]
  return { kind: 'product', products: values.map(value => String(value).replaceAll('\0', '')), isNot }
}

function readTruthRule(asked: Asked, field: TruthField): Test {
  const { operator, isNot } = asked
  if (operator !== 'equals' && operator !== 'in') throw unfit(asked)
  const given: readonly string[] = (operator === 'in' ? readValues(asked) : [readOne(asked)]).map(String)
  if (!given.every(one => one === 'true' || one === 'false')) throw unfitValue(asked, 'true or false')
  return {
    kind: 'truth',
    field,
    values: [true, false].filter(one => given.includes(one ? 'true' : 'false') !== isNot),
  }
}

function readThingsRule(asked: Asked, field: ThingsField): Test {
  const { operator, isNot } = asked
  if (operator === 'is_set') return { kind: 'things', field, names: undefined, isNot }
  if (operator !== 'in' && operator !== 'equals' && operator !== 'contains') throw unfit(asked)
  const values = operator === 'in' ? readValues(asked) : [readOne(asked)]
  return { kind: 'things', field, names: new Set(values.map(value => fold(String(value)))), isNot }
}

function readAttributeRule(asked: Asked, attribute: string): Test {
  const { operator, isNot, rule } = asked
  const { value } = rule
  switch (operator) {
    case 'before':
    case 'after':
      return {
        kind: 'date_order',
        attribute,
        order: operator === 'before' ? 'lt' : 'gt',
        value: readDate(asked),
      }
    case 'within_days':
      return { kind: 'within_days', of: { attribute }, days: readDays(asked), isNot }
    case 'in_next_days':
    case 'anniversary_in_next_days':
      return readUpcoming(asked, { attribute })
    default: {
      const number = typeof value === 'string' ? numberOf(value) : value
      if (ORDERS.includes(operator) && typeof number === 'number')
        return { kind: 'number_order', attribute, order: operator as Order, value: number }
      return readTextRule(asked, { attribute })
    }
  }
}

function readTextRule(asked: Asked, of: TextSource): Test {
  const { operator, isNot } = asked
  switch (operator) {
    case 'is_set':
      return { kind: 'is_set', of, isNot }
    case 'equals':
      return { kind: 'text', of, how: operator, ...readMeant([readOne(asked)], of), isNot }
    case 'in':
      return { kind: 'text', of, how: operator, ...readMeant(readValues(asked), of), isNot }
    case 'contains':
    case 'starts_with':
    case 'ends_with': {
      const value = readText(asked, of)
      if (value === '') throw unfitValue(asked, 'non-empty text')
      const { numbers } = readMeant([readOne(asked)], of)
      return { kind: 'text', of, how: operator, values: [value], numbers, isNot }
    }
    default:
      if (ORDERS.includes(operator))
        return { kind: 'text_order', of, order: operator as Order, value: readText(asked, of) }
      throw unfit(asked)
  }
}

/** Splits off numbers, except for fields that hold only text. */
function readMeant(given: readonly Scalar[], of: TextSource) {
  const isNumber = (one: Scalar): one is number => typeof one === 'number' && 'attribute' in of
  return {
    values: given.filter(one => !isNumber(one)).map(one => asStored(one, of)),
    numbers: given.filter(isNumber),
  }
}

/** Normalizes as stored: addresses to lower case, other text folded. */
function asStored(value: Scalar, of: TextSource): string {
  const text = String(value).replaceAll('\0', '')
  return 'field' in of && of.field === 'email' ? text.normalize('NFC').toLowerCase() : fold(text)
}

function readText(asked: Asked, of: TextSource): string {
  return asStored(readOne(asked), of)
}

function readOne(asked: Asked): Scalar {
  const { value } = asked.rule
  if (value === undefined || isList(value)) throw unfitValue(asked, 'text, a number, true or false')
  return value
}

function readValues(asked: Asked): readonly Scalar[] {
  const { value } = asked.rule
  if (value === undefined || !isList(value) || value.length === 0)
    throw unfitValue(asked, 'a non-empty array')
  return value
}

function isList(value: RuleValue): value is readonly Scalar[] {
  return Array.isArray(value)
}

function readDays(asked: Asked): number {
  const { value } = asked.rule
  if (typeof value !== 'number' || value < 0 || value > MAX_DAYS)
    throw unfitValue(asked, `a number of days, at most ${MAX_DAYS}`)
  return value
}

function readDate(asked: Asked): DateOrMoment {
  const { value } = asked.rule
  const date = typeof value === 'string' ? readDateOrMoment(value) : undefined
  if (date === undefined) throw unfitValue(asked, 'an ISO 8601 date, e.g. 2026-01-05')
  return date
}

function unfit({ rule, place }: Asked) {
  return refusal(`${place}.operator`, `the operator ${rule.operator} does not apply to ${rule.field}`)
}

function unfitValue({ rule, place }: Asked, wanted: string) {
  return refusal(`${place}.value`, `${rule.operator} requires ${wanted}`)
}
