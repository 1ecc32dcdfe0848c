/** What conditions of segments and dynamic lists can ask, as the API takes it, and how it is edited. */
import type { components } from '#api/rest'

export type Conditions = components['schemas']['SegmentConditions']
type Operator = NonNullable<components['schemas']['SegmentRule']['operator']>
export type Scalar = string | number | boolean
export type Value = Scalar | readonly Scalar[]

/** While it is edited: complete only if `isComplete`. */
export interface Rule {
  readonly field: string
  readonly operator: string
  readonly value?: Value
}

export interface Group {
  readonly match: 'all' | 'any'
  readonly rules: readonly (Rule | Group)[]
}

/** Groups inside each other, the outermost included. */
export const MAX_NESTING = 3
export const MAX_RULES = 50

export const NO_RULES: Group = { match: 'all', rules: [] }
export const NEW_RULE: Rule = { field: 'email', operator: 'contains', value: '' }

export const FIELD_GROUPS = {
  contact: ['email', 'first_name', 'last_name', 'subscribed', 'lists', 'tags', 'created_at', 'updated_at'],
  activity: [
    'last_opened_at',
    'last_clicked_at',
    'campaign_received',
    'campaign_opened',
    'campaign_clicked',
    'bounced',
    'bounced_at',
    'bounce_type',
  ],
  purchases: ['purchase_count', 'purchase_total', 'last_purchase_at', 'purchased_product'],
} as const

const OWN = new Set<string>(Object.values(FIELD_GROUPS).flat())
const PREFIX = 'attributes.'

type FieldKind = 'text' | 'moment' | 'truth' | 'things' | 'campaign' | 'number' | 'product' | 'attribute'

const KINDS: Readonly<Record<string, FieldKind>> = {
  ...each(['email', 'first_name', 'last_name', 'bounce_type'], 'text'),
  ...each(
    ['created_at', 'updated_at', 'bounced_at', 'last_opened_at', 'last_clicked_at', 'last_purchase_at'],
    'moment',
  ),
  ...each(['subscribed', 'bounced'], 'truth'),
  ...each(['lists', 'tags'], 'things'),
  ...each(['campaign_received', 'campaign_opened', 'campaign_clicked'], 'campaign'),
  ...each(['purchase_count', 'purchase_total'], 'number'),
  purchased_product: 'product',
}

const SET: readonly Operator[] = ['is_set', 'is_not_set']
const TEXT: readonly Operator[] = [
  'equals',
  'not_equals',
  'contains',
  'not_contains',
  'starts_with',
  'ends_with',
  'in',
  'not_in',
]
const ORDER: readonly Operator[] = ['gt', 'gte', 'lt', 'lte']
const DAYS: readonly Operator[] = [
  'within_days',
  'not_within_days',
  'in_next_days',
  'not_in_next_days',
  'anniversary_in_next_days',
  'not_anniversary_in_next_days',
]

const OPERATORS: Readonly<Record<FieldKind, readonly Operator[]>> = {
  text: [...TEXT, ...SET],
  moment: ['before', 'after', ...DAYS, ...SET],
  truth: ['equals'],
  things: ['in', 'not_in', ...SET],
  campaign: ['equals', 'not_equals', ...SET],
  number: ['equals', 'not_equals', ...ORDER, ...SET],
  product: ['equals', 'not_equals', 'in', 'not_in', ...SET],
  attribute: [...TEXT, ...ORDER, 'before', 'after', ...DAYS, ...SET],
}

export type DeclaredType = components['schemas']['Attribute']['type']

/** What fits a declared attribute. */
const DECLARED: Readonly<Record<DeclaredType, readonly Operator[]>> = {
  text: OPERATORS.text,
  number: [...OPERATORS.number, 'in', 'not_in'],
  date: OPERATORS.moment,
  boolean: ['equals', 'not_equals', ...SET],
  list: ['contains', 'not_contains', 'in', 'not_in', ...SET],
}

/** An attribute to choose; without a type it is not declared. */
export interface KnownAttribute {
  readonly name: string
  readonly label?: string | null
  readonly type?: DeclaredType
}

/** How the value of a rule is entered. */
export type ValueInput =
  | 'none'
  | 'text'
  | 'many'
  | 'number'
  | 'days'
  | 'date'
  | 'truth'
  | 'lists'
  | 'tags'
  | 'campaign'

export function isGroup(one: Rule | Group): one is Group {
  return 'rules' in one
}

/** @returns undefined for a built-in field */
export function attributeOf(field: string): string | undefined {
  if (OWN.has(field)) return undefined
  return field.startsWith(PREFIX) ? field.slice(PREFIX.length) : field
}

export function attributeField(name: string): string {
  return PREFIX + name
}

function kindOf(field: string): FieldKind {
  return KINDS[field] ?? 'attribute'
}

/** @param type that the attribute is declared with, if it is one */
export function operatorsOf(field: string, type?: DeclaredType): readonly Operator[] {
  const kind = kindOf(field)
  return kind === 'attribute' && type !== undefined ? DECLARED[type] : OPERATORS[kind]
}

/** @param type that the attribute is declared with, if it is one */
export function inputOf({ field, operator }: Rule, type?: DeclaredType): ValueInput {
  const kind = kindOf(field)
  if ((SET as readonly string[]).includes(operator)) return 'none'
  if ((DAYS as readonly string[]).includes(operator)) return 'days'
  if (operator === 'before' || operator === 'after') return 'date'
  if (kind === 'moment') return 'date'
  if (kind === 'truth') return 'truth'
  if (kind === 'things') return field === 'lists' ? 'lists' : 'tags'
  if (kind === 'campaign') return 'campaign'
  if (kind === 'number') return 'number'
  if (operator === 'in' || operator === 'not_in') return 'many'
  if (type === 'boolean') return 'truth'
  return type === 'number' ? 'number' : 'text'
}

const EMPTY: Readonly<Record<ValueInput, Value | undefined>> = {
  none: undefined,
  text: '',
  many: [],
  number: '',
  days: 30,
  date: '',
  truth: true,
  lists: [],
  tags: [],
  campaign: '',
}

/** The rule with another field; operator and value stay if they fit. */
export function withField(rule: Rule, field: string, type?: DeclaredType): Rule {
  const operators: readonly string[] = operatorsOf(field, type)
  const operator = operators.includes(rule.operator) ? rule.operator : (operators[0] ?? 'equals')
  const isSameKind = kindOf(field) === kindOf(rule.field) && field !== 'lists' && field !== 'tags'
  return fitted({ ...rule, field, operator }, isSameKind ? inputOf(rule) : undefined, type)
}

export function withOperator(rule: Rule, operator: string, type?: DeclaredType): Rule {
  return fitted({ ...rule, operator }, inputOf(rule, type), type)
}

/** @param before how the value was entered */
function fitted(rule: Rule, before: ValueInput | undefined, type?: DeclaredType): Rule {
  const input = inputOf(rule, type)
  if (input === before) return rule
  const value = EMPTY[input]
  const { field, operator } = rule
  return value === undefined ? { field, operator } : { field, operator, value }
}

export function isComplete(one: Rule | Group): boolean {
  if (isGroup(one)) return one.rules.every(isComplete)
  if (attributeOf(one.field)?.trim() === '') return false
  const input = inputOf(one)
  const { value } = one
  if (input === 'none') return true
  if (isMany(value)) return value.some(item => String(item).trim() !== '')
  return value !== undefined && String(value).trim() !== ''
}

export function countRules(group: Group): number {
  return group.rules.reduce((all, one) => all + (isGroup(one) ? countRules(one) : 1), 0)
}

/** As the API takes it. Numbers typed for attributes are sent as such, so that they compare numerically. */
export function toConditions(group: Group): Conditions {
  const read = (one: Rule | Group): object => {
    if (isGroup(one)) return { match: one.match, rules: one.rules.map(read) }
    const { field, operator, value } = one
    if (value === undefined) return { field, operator }
    const input = inputOf(one)
    const isLoose = attributeOf(field) !== undefined && (input === 'text' || input === 'many')
    const sent = (item: Scalar): Scalar =>
      input === 'number' ? numberIfAny(item) : isLoose ? numberIfPlain(item) : item
    return {
      field,
      operator,
      value: isMany(value)
        ? value
            .map(item => (typeof item === 'string' ? item.trim() : item))
            .filter(item => item !== '')
            .map(sent)
        : sent(value),
    }
  }
  return read(group) as Conditions
}

export function fromConditions(conditions: Conditions): Group {
  return conditions as unknown as Group
}

/** `42` and `-1.5`, but not `007` or an address code. JSON has no infinity. */
function numberIfPlain(value: Scalar): Scalar {
  return typeof value === 'string' && String(Number(value)) === value.trim() ? numberIfAny(value) : value
}

/** `1.50` too. What is no number is left to the API, which says so. */
function numberIfAny(value: Scalar): Scalar {
  const isNumber = typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value))
  return isNumber ? Number(value) : value
}

export function isMany(value: Value | undefined): value is readonly Scalar[] {
  return Array.isArray(value)
}

function each(fields: readonly string[], kind: FieldKind): Record<string, FieldKind> {
  return Object.fromEntries(fields.map(field => [field, kind]))
}
