/**
 * Whether a rule suits the type of an attribute: `gt 100` of text finds nobody, and nothing else would say so. Pure.
 *
 * Numeric text counts as a number and ISO 8601 text as a date, since rules compare them as such.
 */
import { readMoment } from '../../core/moments.js'
import { typeOfValue, type AttributeType } from '../attributes/declared-values.js'
import { numberOf } from '../contacts/compared-attributes.js'
import type { Rule } from './conditions.js'
import type { Test } from './read-conditions.js'

/** For sentences: what an attribute of this type holds. */
const HELD: Readonly<Record<AttributeType, string>> = {
  text: 'text',
  number: 'numbers',
  date: 'dates',
  boolean: 'true or false',
  list: 'lists',
}

const DECLARED: Readonly<Record<AttributeType, string>> = {
  text: 'text',
  number: 'a number',
  date: 'a date',
  boolean: 'true or false',
  list: 'a list',
}

/** Whether the test can be true of values of this type. */
function suits(test: Test, type: AttributeType): boolean {
  switch (test.kind) {
    case 'number_order':
      return type === 'number'
    case 'date_order':
    case 'within_days':
    case 'in_next_days':
      return type === 'date'
    case 'text_order':
      return type === 'text' || type === 'date'
    case 'text':
      return suitsText(test, type)
    default:
      return true
  }
}

function suitsText({ how, values, numbers }: Extract<Test, { kind: 'text' }>, type: AttributeType): boolean {
  if (type === 'list') return how === 'in' || how === 'contains'
  if (how !== 'equals' && how !== 'in') return true
  switch (type) {
    case 'number':
      return numbers.length > 0 || values.some(value => numberOf(value) !== undefined)
    case 'boolean':
      return values.some(value => value === 'true' || value === 'false')
    case 'date':
      return values.some(value => readMoment(value.toUpperCase()) !== undefined)
    default:
      return values.length > 0
  }
}

/** For sentences: what the test compares. */
function comparedBy(test: Test): string {
  switch (test.kind) {
    case 'number_order':
      return 'numbers'
    case 'date_order':
    case 'within_days':
    case 'in_next_days':
      return 'dates'
    case 'text':
      if (test.values.length === 0) return 'numbers'
      return test.values.every(value => value === 'true' || value === 'false') ? 'true or false' : 'text'
    default:
      return 'text'
  }
}

/**
 * @param declared the type it is declared with, if any
 * @param values of some contacts that have the attribute
 * @returns a sentence, or undefined if the rule suits the declared type and most of the values
 */
export function typeWarning(
  attribute: string,
  rule: Rule,
  test: Test,
  declared: AttributeType | undefined,
  values: readonly unknown[],
): string | undefined {
  const name = `attributes.${attribute}`
  const compares = `${rule.operator} compares ${comparedBy(test)}`
  if (declared !== undefined && !suits(test, declared))
    return `${name} is declared as ${DECLARED[declared]}, but ${compares}`
  const types = values.flatMap(value => typeOfValue(value) ?? [])
  if (types.filter(type => suits(test, type)).length * 2 >= types.length) return undefined
  const unsuited = HELD[commonest(types.filter(type => !suits(test, type)))]
  if (declared !== undefined)
    return `${name} is declared as ${DECLARED[declared]}, but holds ${unsuited} in most contacts: import or write the values again`
  const wanted = WANTED[test.kind]
  const advice = wanted === undefined ? '' : `: declare it as a ${wanted} and import it again`
  return `${name} holds ${unsuited} in most contacts, but ${compares}${advice}`
}

/** Type to declare an attribute as, for rules that compare nothing else. */
const WANTED: Partial<Readonly<Record<Test['kind'], AttributeType>>> = {
  number_order: 'number',
  date_order: 'date',
  within_days: 'date',
  in_next_days: 'date',
}

function commonest(types: readonly AttributeType[]): AttributeType {
  const counts = new Map<AttributeType, number>()
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1)
  const [first] = [...counts].sort(([, a], [, b]) => b - a)
  return first?.[0] ?? 'text'
}
