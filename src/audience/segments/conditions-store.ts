/**
 * SQL of conditions: what `read-conditions.ts` has read, as a condition on the table `contacts` that both databases run.
 *
 * Whatever a rule says is a parameter; names of columns stand here. Within a group what is cheap to ask comes first: flags and
 * moments, then texts, then attributes. Each part is true or not, never unknown, where it says `not`.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../../db/database.js'
import { dialectOf } from '../audience-store.js'
import { momentTrait, numberTrait, textTrait } from '../contacts/traits.js'
import { fold } from '../../core/fold.js'
import { findListSeqs } from '../lists/list-store.js'
import { CONTACT_TAGS, isWithAny, LIST_MEMBERS } from '../pair-store.js'
import { findTagSeqs } from '../tags/tag-store.js'
import type { Group, Order, Test, TextField, TextSource } from './read-conditions.js'

type Condition = RawBuilder<boolean>

const DAY_MS = 86_400_000

const SIGNS: Readonly<Record<Order, RawBuilder<unknown>>> = {
  lt: sql`<`,
  lte: sql`<=`,
  gt: sql`>`,
  gte: sql`>=`,
}

const TEXT_COLUMNS: Readonly<Record<TextField, string>> = {
  email: 'email',
  first_name: 'first_folded',
  last_name: 'last_folded',
  bounce_type: 'bounce_type',
}

const NOBODY = sql<boolean>`1 = 0`

/** What a compiled condition depends on beside the rules. */
export interface Asking {
  readonly workspaceId: string
  /** Ms since epoch UTC. */
  readonly now: number
}

/** @param db also tells which lists and tags there are */
export async function compileConditions(db: Queries, group: Group, asking: Asking): Promise<Condition> {
  if (group.parts.length === 0) return NOBODY
  const parts: { cost: number; condition: Condition }[] = []
  for (const part of group.parts)
    parts.push(
      'parts' in part
        ? { cost: COSTS.group, condition: await compileConditions(db, part, asking) }
        : { cost: costOf(part), condition: await compileTest(db, part, asking) },
    )
  const inOrder = parts.sort((a, b) => a.cost - b.cost).map(({ condition }) => condition)
  return sql<boolean>`(${sql.join(inOrder, group.isAll ? sql` and ` : sql` or `)})`
}

const COSTS = { column: 0, text: 1, things: 2, attribute: 3, group: 4 } as const

function costOf(test: Test): number {
  if ('attribute' in test || ('of' in test && 'attribute' in test.of)) return COSTS.attribute
  if (test.kind === 'things') return COSTS.things
  return test.kind === 'text' || test.kind === 'text_order' ? COSTS.text : COSTS.column
}

async function compileTest(db: Queries, test: Test, asking: Asking): Promise<Condition> {
  switch (test.kind) {
    case 'is_set': {
      const value = 'moment' in test.of ? sql.ref(test.of.moment) : presence(test.of)
      return test.isNot ? sql<boolean>`${value} is null` : sql<boolean>`${value} is not null`
    }
    case 'text':
      return compileText(db, test)
    case 'text_order': {
      const sorting = dialectOf(db) === 'postgres' ? sql`collate "C"` : sql``
      return sql<boolean>`${text(test.of)} ${sorting} ${SIGNS[test.order]} ${test.value}`
    }
    case 'number':
      return among(number(numberTrait(test.attribute)), test.values, test.isNot)
    case 'number_order':
      return sql<boolean>`${number(numberTrait(test.attribute))} ${SIGNS[test.order]} ${real(test.value)}`
    case 'date_order':
      return sql<boolean>`${number(momentTrait(test.attribute))} ${SIGNS[test.order]} ${real(test.value)}`
    case 'moment':
      return sql<boolean>`${sql.ref(test.field)} ${SIGNS[test.order]} ${test.value}`
    case 'moment_is':
      return maybeNot(sql.ref(test.field), sql`= ${test.value}`, test.isNot)
    case 'within_days': {
      const value = 'moment' in test.of ? sql.ref(test.of.moment) : number(momentTrait(test.of.attribute))
      const from = Math.round(asking.now - test.days * DAY_MS)
      return maybeNot(value, sql`between ${real(from)} and ${real(asking.now)}`, test.isNot)
    }
    case 'truth':
      return sql<boolean>`${sql.ref(test.field === 'bounced' ? 'is_bounced' : 'subscribed')} = ${test.value ? 1 : 0}`
    case 'things':
      return compileThings(db, test, asking)
  }
}

function compileText(db: Queries, { of, how, values, isNot }: Extract<Test, { kind: 'text' }>): Condition {
  const value = text(of)
  const [first = ''] = values
  switch (how) {
    case 'in':
      return maybeNot(value, sql`in (${sql.join(values)})`, isNot)
    case 'contains': {
      const position = sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')
      const found = sql<boolean>`${position}(${value}, ${first}) > 0`
      return isNot ? sql<boolean>`(${value} is null or not ${found})` : found
    }
    case 'starts_with':
      return sql<boolean>`substr(${value}, 1, ${sql.lit(lengthOf(first))}) = ${first}`
    case 'ends_with': {
      const length = sql.lit(lengthOf(first))
      return dialectOf(db) === 'sqlite'
        ? sql<boolean>`substr(${value}, -${length}) = ${first}`
        : sql<boolean>`right(${value}, ${length}) = ${first}`
    }
  }
}

async function compileThings(
  db: Queries,
  { field, names, isNot }: Extract<Test, { kind: 'things' }>,
  { workspaceId }: Asking,
): Promise<Condition> {
  const [find, kind] =
    field === 'lists' ? ([findListSeqs, LIST_MEMBERS] as const) : ([findTagSeqs, CONTACT_TAGS] as const)
  const seqs = await find(
    db,
    workspaceId,
    ({ id, name }) => names === undefined || names.has(id) || names.has(fold(name)),
  )
  if (seqs.length === 0) return isNot ? sql<boolean>`1 = 1` : NOBODY
  const isWith = isWithAny(kind, seqs)
  return isNot ? sql<boolean>`not ${isWith}` : isWith
}

/** Characters, as SQL counts them. */
function lengthOf(value: string): number {
  return Array.from(value).length
}

/** Text, folded. */
function text(of: TextSource): RawBuilder<unknown> {
  return 'field' in of
    ? sql.ref(TEXT_COLUMNS[of.field])
    : sql`(traits ->> cast(${textTrait(of.attribute)} as text))`
}

/** Null only where there is no such thing; an attribute that is no text is there as well. */
function presence(of: TextSource): RawBuilder<unknown> {
  return 'field' in of ? text(of) : sql`(traits -> cast(${textTrait(of.attribute)} as text))`
}

function number(trait: string): RawBuilder<unknown> {
  return sql`cast(traits ->> cast(${trait} as text) as double precision)`
}

function real(value: number): RawBuilder<unknown> {
  return sql`cast(${value} as double precision)`
}

function among(value: RawBuilder<unknown>, numbers: readonly number[], isNot: boolean): Condition {
  return maybeNot(value, sql`in (${sql.join(numbers.map(real))})`, isNot)
}

/** What is missing is not so. */
function maybeNot(value: RawBuilder<unknown>, comparison: RawBuilder<unknown>, isNot: boolean): Condition {
  return isNot
    ? sql<boolean>`(${value} is null or not ${value} ${comparison})`
    : sql<boolean>`${value} ${comparison}`
}
