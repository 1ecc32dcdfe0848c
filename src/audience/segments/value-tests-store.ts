/**
 * Compiles tests that compare a value to SQL: text, number, array, of a contact's field or of an attribute. Those of dates are in
 * `date-tests-store.ts`.
 *
 * Used by `conditions-store.ts`, which negates and combines them. Attributes are read from `contact_attributes`
 * (`contacts/compared-attributes.ts`).
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf, type Dialect, type Queries } from '../../db/database.js'
import { attributeKey, COMPARED } from '../contacts/compared-attributes.js'
import type { Order, Test } from './read-conditions.js'

export type Condition = RawBuilder<boolean>

export const SIGNS: Readonly<Record<Order, RawBuilder<unknown>>> = {
  lt: sql`<`,
  lte: sql`<=`,
  gt: sql`>`,
  gte: sql`>=`,
}

/** Whether a contact has attributes that meet a condition on the table `contact_attributes`. */
export function withAttribute(isMet: Condition): Condition {
  return sql<boolean>`exists (
    select 1 from contact_attributes where contact_attributes.contact = contacts.seq and ${isMet})`
}

/** Whether a contact has the attribute, even an empty one. */
export function hasAttribute(db: Queries, attribute: string): Condition {
  return withAttribute(attributeValues(attribute, dialectOf(db)).isThere)
}

/** Expressions that a test compares; a missing value is null. */
export interface Values {
  readonly isThere: Condition
  readonly text: RawBuilder<unknown>
  readonly number: RawBuilder<unknown>
  readonly moment: RawBuilder<unknown>
  /** Whether the moment is that of a date without a time; undefined for fields that always have one. */
  readonly isDay?: Condition
  /** Whether an array has an item that meets a condition on `item.value`; undefined for fields that are never arrays. */
  readonly hasItem?: (kind: 'items' | 'itemNumbers', isMet: Condition) => Condition
}

export function attributeValues(attribute: string, dialect: Dialect): Values {
  const key = attributeKey(attribute)
  if (dialect === 'postgres') {
    const at = (index: number) => sql`(compared -> cast(${key} as text) ->> ${sql.lit(index)})`
    const numberAt = (index: number) => sql`cast(${at(index)} as double precision)`
    return {
      isThere: sql<boolean>`jsonb_exists(compared, ${key})`,
      text: at(COMPARED.text),
      number: numberAt(COMPARED.number),
      moment: numberAt(COMPARED.moment),
      isDay: isDayText(sql`${at(COMPARED.text)} collate "C"`),
      hasItem: (kind, isMet) => sql<boolean>`exists (
        select 1 from jsonb_array_elements_text(
          case when jsonb_typeof(compared -> cast(${key} as text) -> ${sql.lit(COMPARED[kind])}) = 'array'
            then compared -> cast(${key} as text) -> ${sql.lit(COMPARED[kind])} end) as item (value) where ${isMet})`,
    }
  }
  const pathOf = (index: number) => `$."${key}"[${index}]`
  const at = (index: number) => sql`(compared ->> ${pathOf(index)})`
  return {
    isThere: sql<boolean>`json_type(compared, ${pathOf(COMPARED.text)}) is not null`,
    text: at(COMPARED.text),
    number: at(COMPARED.number),
    moment: at(COMPARED.moment),
    isDay: isDayText(at(COMPARED.text)),
    hasItem: (kind, isMet) => sql<boolean>`exists (
      select 1 from json_each(compared, ${pathOf(COMPARED[kind])}) as item where ${isMet})`,
  }
}

/** Of text that parses as a moment, where a time begins with a digit after the date and a separator: `2026-01-05t10`. */
function isDayText(text: RawBuilder<unknown>): Condition {
  return sql<boolean>`substr(${text}, 12, 1) not between '0' and '9'`
}

/** Tests that fields and attributes have in common, without negation. */
export function compileValueTest(test: Test, values: Values, dialect: Dialect): Condition {
  const { isThere, text, number } = values
  switch (test.kind) {
    case 'is_set':
      // Empty text counts as unset. Empty arrays are not stored; others have no text.
      return 'moment' in test.of ? isThere : sql<boolean>`${isThere} and coalesce(${text}, 'x') <> ''`
    case 'text':
      return compileText(test, values, dialect)
    case 'text_order': {
      const sorting = dialect === 'postgres' ? sql`collate "C"` : sql``
      return sql<boolean>`${text} ${sorting} ${SIGNS[test.order]} ${test.value}`
    }
    case 'number_order':
      return sql<boolean>`${number} ${SIGNS[test.order]} ${real(test.value)}`
    default:
      throw new Error(`${test.kind} compares no value`)
  }
}

function compileText(
  { values, numbers, how }: TextTest,
  { text, number, hasItem }: Values,
  dialect: Dialect,
): Condition {
  const any: Condition[] = []
  if (values.length > 0) any.push(compareText({ values, how }, text, dialect))
  if (hasItem) {
    const hasNumbers = numbers.length > 0
    if (hasNumbers && (how === 'equals' || how === 'in'))
      any.push(sql<boolean>`${number} in (${sql.join(numbers.map(real))})`)
    if (how === 'in' || how === 'contains') {
      // `contains` with a number: its text form matches substrings of text, not items of arrays.
      if (values.length > 0 && !(how === 'contains' && hasNumbers))
        any.push(hasItem('items', sql<boolean>`item.value in (${sql.join(values)})`))
      const asNumber = sql`cast(item.value as double precision)`
      if (hasNumbers)
        any.push(hasItem('itemNumbers', sql<boolean>`${asNumber} in (${sql.join(numbers.map(real))})`))
    }
  }
  return sql<boolean>`(${sql.join(any, sql` or `)})`
}

type TextTest = Extract<Test, { kind: 'text' }>

function compareText(
  { how, values }: Pick<TextTest, 'how' | 'values'>,
  value: RawBuilder<unknown>,
  dialect: Dialect,
): Condition {
  const [first = ''] = values
  const length = sql.lit(Array.from(first).length)
  switch (how) {
    case 'equals':
    case 'in':
      return sql<boolean>`${value} in (${sql.join(values)})`
    case 'contains':
      return sql<boolean>`${sql.raw(dialect === 'sqlite' ? 'instr' : 'strpos')}(${value}, ${first}) > 0`
    case 'starts_with':
      return sql<boolean>`substr(${value}, 1, ${length}) = ${first}`
    case 'ends_with':
      return dialect === 'sqlite'
        ? sql<boolean>`substr(${value}, -${length}) = ${first}`
        : sql<boolean>`right(${value}, ${length}) = ${first}`
  }
}

/** Typed, since PostgreSQL would otherwise infer the type of a parameter from its neighbours. */
export function real(value: number): RawBuilder<unknown> {
  return sql`cast(${value} as double precision)`
}
