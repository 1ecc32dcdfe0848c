/**
 * Compiles conditions read by `read-conditions.ts` to SQL on the table `contacts`, for both databases.
 *
 * Values from rules are always parameters; column names come from this file. Within a group, cheap tests run first: flags and moments, then
 * texts, lists and tags, then attributes without a place. Every negated test is true or false, never null.
 */
import { sql, type RawBuilder } from 'kysely'
import { AppError } from '../../core/errors.js'
import { dialectOf } from '../../db/database.js'
import type { Dialect, Queries } from '../../db/database.js'
import { findAudience, type SeqRange } from '../audience-store.js'
import { findPlaces, type Places } from '../contacts/places-store.js'
import { itemNumbersTrait, itemsTrait, momentTrait, numberTrait, textTrait } from '../contacts/traits.js'
import { findNamedLists } from '../lists/list-store.js'
import { CONTACT_TAGS, hasAny, isWithAny, LIST_MEMBERS, type NamedSeq } from '../pair-store.js'
import { findNamedTags } from '../tags/tag-store.js'
import type { Conditions } from './conditions.js'
import {
  readConditions,
  type Group,
  type MomentField,
  type Order,
  type Test,
  type TextField,
  type TextSource,
  type ThingsField,
} from './read-conditions.js'
import { historyOf } from './rule-history.js'
import { upcomingDaysOfYear } from './upcoming-days.js'

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

/** Includes dynamic lists they reference. `rule-references.ts` has a lower limit when storing, but lists can change later. */
const MAX_TESTS = 1_000
const MAX_LISTS_DEEP = 10

/** Inputs of a compiled condition besides the rules. */
export interface Asking {
  readonly workspaceId: string
  /** Ms since epoch UTC. */
  readonly now: number
}

/** Whether the statement scans a whole range of contacts, or checks contacts found otherwise, each by a lookup. */
export type Reach = 'all' | 'some'

/** Compiler input. */
interface Known {
  readonly dialect: Dialect
  readonly workspaceId: string
  readonly now: number
  readonly places: Places
  /** Audience size; set only if there are rules on lists or tags. */
  readonly contacts: number
  readonly lists: readonly NamedSeq[]
  readonly tags: readonly NamedSeq[]
}

interface Aim {
  readonly range: SeqRange
  readonly reach: Reach
  /** Whether other rules run first and exclude some contacts. */
  readonly isNarrowed: boolean
  /** Dynamic lists being compiled. */
  readonly inLists: readonly number[]
  /** Remaining number of tests. */
  readonly budget: { left: number }
}

/** @returns the condition for each range of contacts; resolves lists and tags now */
export async function conditionsOf(
  db: Queries,
  audience: number,
  group: Group,
  { workspaceId, now }: Asking,
): Promise<(range: SeqRange, reach: Reach) => Condition> {
  const things = new Set(thingsFields(group))
  const known: Known = {
    dialect: dialectOf(db),
    workspaceId,
    now,
    places: await findPlaces(db, audience),
    contacts: things.size > 0 ? ((await findAudience(db, workspaceId))?.contacts ?? 0) : 0,
    lists: things.has('lists') ? await findNamedLists(db, workspaceId) : [],
    // A dynamic list may have rules on tags.
    tags: things.size > 0 ? await findNamedTags(db, workspaceId) : [],
  }
  return (range, reach) =>
    compileGroup(group, known, { range, reach, isNarrowed: false, inLists: [], budget: { left: MAX_TESTS } })
}

function thingsFields({ parts }: Group): ThingsField[] {
  return parts.flatMap(part =>
    'parts' in part ? thingsFields(part) : part.kind === 'things' ? part.field : [],
  )
}

function compileGroup(group: Group, known: Known, aim: Aim): Condition {
  if (group.parts.length === 0) return NOBODY
  const within = { ...aim, isNarrowed: aim.isNarrowed || (group.isAll && group.parts.length > 1) }
  const parts = group.parts.map(part =>
    'parts' in part
      ? { cost: COSTS.group, condition: compileGroup(part, known, within) }
      : { cost: costOf(part, known), condition: compileTest(part, known, within) },
  )
  const inOrder = parts.sort((a, b) => a.cost - b.cost).map(({ condition }) => condition)
  return sql<boolean>`(${sql.join(inOrder, group.isAll ? sql` and ` : sql` or `)})`
}

const COSTS = { column: 0, text: 1, things: 2, attribute: 3, group: 4 } as const

function costOf(test: Test, { places }: Known): number {
  const attribute =
    'attribute' in test
      ? test.attribute
      : 'of' in test && 'attribute' in test.of
        ? test.of.attribute
        : undefined
  if (attribute !== undefined) return places.has(attribute) ? COSTS.text : COSTS.attribute
  if (test.kind === 'things' || test.kind === 'campaign') return COSTS.things
  const isOfPurchases = 'of' in test && 'moment' in test.of && test.of.moment === 'last_purchase_at'
  if (test.kind === 'purchases' || test.kind === 'product' || isOfPurchases) return COSTS.attribute
  return test.kind === 'text' || test.kind === 'text_order' ? COSTS.text : COSTS.column
}

function compileTest(test: Test, known: Known, aim: Aim): Condition {
  aim.budget.left -= 1
  if (aim.budget.left < 0) throw tooLarge(`have more than ${MAX_TESTS} rules`)
  switch (test.kind) {
    case 'is_set':
      return compilePresence(test, known)
    case 'text':
      return compileText(test, known)
    case 'text_order': {
      const sorting = known.dialect === 'postgres' ? sql`collate "C"` : sql``
      return sql<boolean>`${text(test.of, known)} ${sorting} ${SIGNS[test.order]} ${test.value}`
    }
    case 'number_order':
      return sql<boolean>`${number(test.attribute, known)} ${SIGNS[test.order]} ${real(test.value)}`
    case 'date_order':
      return sql<boolean>`${moment(test.attribute, known)} ${SIGNS[test.order]} ${real(test.value)}`
    case 'moment':
      return sql<boolean>`${ownMoment(test.field, known)} ${SIGNS[test.order]} ${test.value}`
    case 'moment_is':
      return maybeNot(ownMoment(test.field, known), sql`= ${test.value}`, test.isNot)
    case 'within_days': {
      const value = momentOf(test.of, known)
      const from = Math.round(known.now - test.days * DAY_MS)
      return maybeNot(value, sql`between ${real(from)} and ${real(known.now)}`, test.isNot)
    }
    case 'in_next_days':
      return compileUpcoming(test, known)
    case 'campaign': {
      const range = aim.reach === 'all' ? aim.range : undefined
      const isAmong = historyOf('campaigns').isAmong(test.field, known.workspaceId, test.ids, range)
      return test.isNot ? sql<boolean>`not ${isAmong}` : isAmong
    }
    case 'purchases': {
      const { workspaceId } = known
      const purchases = historyOf('purchases')
      const value =
        test.field === 'purchase_count' ? purchases.count(workspaceId) : purchases.total(workspaceId)
      const sign = test.order === 'equals' ? sql`=` : SIGNS[test.order]
      const isSo = sql<boolean>`${value} ${sign} ${real(test.value)}`
      return test.isNot ? sql<boolean>`not (${isSo})` : isSo
    }
    case 'product': {
      const hasBought = historyOf('purchases').hasBought(known.dialect, known.workspaceId, test.products)
      return test.isNot ? sql<boolean>`not ${hasBought}` : hasBought
    }
    case 'truth':
      if (test.values.length === 0) return NOBODY
      return sql<boolean>`${sql.ref(test.field === 'bounced' ? 'is_bounced' : 'subscribed')} in (${sql.join(
        test.values.map(value => sql.lit(value ? 1 : 0)),
      )})`
    case 'things':
      return compileThings(test, known, aim)
  }
}

/** Days are UTC. */
function compileUpcoming(
  { of, days, isYearly, isNot }: Extract<Test, { kind: 'in_next_days' }>,
  known: Known,
): Condition {
  const value = momentOf(of, known)
  if (!isYearly) {
    const today = Math.floor(known.now / DAY_MS) * DAY_MS
    return maybeNot(value, sql`between ${real(today)} and ${real(today + (days + 1) * DAY_MS - 1)}`, isNot)
  }
  const window = upcomingDaysOfYear(known.now, days)
  if (!window) return sql<boolean>`${value} is ${isNot ? sql`null` : sql`not null`}`
  const day =
    known.dialect === 'sqlite'
      ? sql`strftime('%m%d', ${value} / 1000.0, 'unixepoch')`
      : sql`to_char(to_timestamp(${value} / 1000.0) at time zone 'UTC', 'MMDD')`
  const { from, to } = window
  const isNear =
    from <= to
      ? sql<boolean>`(${day} >= ${from} and ${day} <= ${to})`
      : sql<boolean>`(${day} >= ${from} or ${day} <= ${to})`
  return isNot ? sql<boolean>`${isNear} is not true` : isNear
}

function momentOf(of: { readonly moment: MomentField } | { readonly attribute: string }, known: Known) {
  return 'moment' in of ? ownMoment(of.moment, known) : moment(of.attribute, known)
}

function ownMoment(field: MomentField, { workspaceId }: Known): RawBuilder<unknown> {
  return field === 'last_purchase_at' ? historyOf('purchases').lastAt(workspaceId) : sql.ref(field)
}

function compileText(test: Extract<Test, { kind: 'text' }>, known: Known): Condition {
  const { of, values, numbers, how } = test
  const any: Condition[] = []
  if (values.length > 0) any.push(compareText(test, text(of, known), known))
  if ('attribute' in of) {
    if (numbers.length > 0 && (how === 'equals' || how === 'in'))
      any.push(sql<boolean>`${number(of.attribute, known)} in (${sql.join(numbers.map(real))})`)
    if (how === 'in' || how === 'contains') any.push(compileItems(test, of.attribute, known))
  }
  const found = sql<boolean>`(${sql.join(any, sql` or `)})`
  return test.isNot ? sql<boolean>`${found} is not true` : found
}

function compareText(
  { how, values }: Extract<Test, { kind: 'text' }>,
  value: RawBuilder<unknown>,
  { dialect }: Known,
): Condition {
  const [first = ''] = values
  switch (how) {
    case 'equals':
    case 'in':
      return sql<boolean>`${value} in (${sql.join(values)})`
    case 'contains':
      return sql<boolean>`${sql.raw(dialect === 'sqlite' ? 'instr' : 'strpos')}(${value}, ${first}) > 0`
    case 'starts_with':
      return sql<boolean>`substr(${value}, 1, ${sql.lit(lengthOf(first))}) = ${first}`
    case 'ends_with': {
      const length = sql.lit(lengthOf(first))
      return dialect === 'sqlite'
        ? sql<boolean>`substr(${value}, -${length}) = ${first}`
        : sql<boolean>`right(${value}, ${length}) = ${first}`
    }
  }
}

/** Whether an array contains one of the values. An attribute with text is not an array, which a place column tells cheaply. */
function compileItems(
  { how, values, numbers }: Extract<Test, { kind: 'text' }>,
  attribute: string,
  { dialect, places }: Known,
): Condition {
  const isArray = (trait: string) => {
    const has = sql<boolean>`(traits -> cast(${trait} as text)) is not null`
    const place = places.get(attribute)
    return place === undefined ? has : sql<boolean>`${sql.ref(`text_${place}`)} is null and ${has}`
  }
  const hasItem = (trait: string, isMeant: Condition) =>
    dialect === 'sqlite'
      ? sql<boolean>`(${isArray(trait)} and exists (
          select 1 from json_each(traits, ${`$."${trait}"`}) as item where ${isMeant}))`
      : sql<boolean>`(${isArray(trait)} and exists (
          select 1 from jsonb_array_elements_text(traits -> cast(${trait} as text)) as item (value) where ${isMeant}))`
  const any: Condition[] = []
  // `contains` with a number: its text form matches substrings of text attributes, not array items.
  if (values.length > 0 && !(how === 'contains' && numbers.length > 0))
    any.push(hasItem(itemsTrait(attribute), sql<boolean>`item.value in (${sql.join(values)})`))
  if (numbers.length > 0) {
    const among = sql<boolean>`cast(item.value as double precision) in (${sql.join(numbers.map(real))})`
    any.push(hasItem(itemNumbersTrait(attribute), among))
  }
  return sql<boolean>`(${sql.join(any, sql` or `)})`
}

/** Below this share of the audience, members are read first and other contacts skipped. */
const RARE = 1 / 8

/**
 * Reads all members of a thing if they are few, or if no other rule runs first; otherwise looks up membership for each contact that matches
 * the other rules.
 */
function compileThings(
  { field, names, isNot }: Extract<Test, { kind: 'things' }>,
  known: Known,
  aim: Aim,
): Condition {
  const named = known[field].filter(({ id, folded, conditions }) =>
    // `is_set` on lists concerns static lists only.
    names === undefined ? conditions === undefined : names.has(id) || names.has(folded),
  )
  if (named.length === 0) return isNot ? sql<boolean>`1 = 1` : NOBODY
  const fixed = named.filter(({ conditions }) => conditions === undefined)
  const any = [
    ...(fixed.length > 0 ? [compileMembers(field, fixed, known, aim)] : []),
    ...named.flatMap(list => (list.conditions ? [compileList(list.seq, list.conditions, known, aim)] : [])),
  ]
  const isWith = sql<boolean>`(${sql.join(any, sql` or `)})`
  return isNot ? sql<boolean>`${isWith} is not true` : isWith
}

/** Members of a dynamic list are the contacts that match its conditions. */
function compileList(seq: number, conditions: Conditions, known: Known, aim: Aim): Condition {
  if (aim.inLists.includes(seq)) throw tooLarge('include a dynamic list that includes itself')
  if (aim.inLists.length >= MAX_LISTS_DEEP)
    throw tooLarge(`nest dynamic lists more than ${MAX_LISTS_DEEP} deep`)
  return compileGroup(readConditions(conditions), known, { ...aim, inLists: [...aim.inLists, seq] })
}

function tooLarge(fault: string): AppError {
  return new AppError('conflict', `the conditions ${fault}; change the dynamic lists they reference`)
}

function compileMembers(
  field: ThingsField,
  meant: readonly NamedSeq[],
  known: Known,
  { range, reach, isNarrowed }: Aim,
): Condition {
  const isRare = meant.reduce((sum, { contacts }) => sum + contacts, 0) <= RARE * known.contacts
  const seqs = meant.map(({ seq }) => seq)
  const kind = field === 'lists' ? LIST_MEMBERS : CONTACT_TAGS
  return reach === 'all' && (isRare || !isNarrowed) ? isWithAny(kind, seqs, range) : hasAny(kind, seqs)
}

/** Code points, as in SQL. */
function lengthOf(value: string): number {
  return Array.from(value).length
}

/** Folded text. */
function text(of: TextSource, known: Known): RawBuilder<unknown> {
  if ('field' in of) return sql.ref(TEXT_COLUMNS[of.field])
  const place = known.places.get(of.attribute)
  return place === undefined
    ? sql`(traits ->> cast(${textTrait(of.attribute)} as text))`
    : sql.ref(`text_${place}`)
}

/** Empty text counts as unset; empty arrays are not stored in `traits`. Other types are in `traits`, even for a placed attribute. */
function compilePresence({ of, isNot }: Extract<Test, { kind: 'is_set' }>, known: Known): Condition {
  if ('moment' in of)
    return sql<boolean>`${ownMoment(of.moment, known)} ${isNot ? sql`is null` : sql`is not null`}`
  const value = text(of, known)
  const isSet = (): Condition => {
    if ('field' in of) return sql<boolean>`${value} <> ''`
    const isThere = sql<boolean>`(traits -> cast(${textTrait(of.attribute)} as text)) is not null`
    return known.places.has(of.attribute)
      ? sql<boolean>`(${value} <> '' or (${value} is null and ${isThere}))`
      : sql<boolean>`(${isThere} and coalesce(${value}, 'x') <> '')`
  }
  return isNot ? sql<boolean>`(${isSet()}) is not true` : isSet()
}

function number(attribute: string, { places }: Known): RawBuilder<unknown> {
  const place = places.get(attribute)
  return place === undefined ? numberOf(numberTrait(attribute)) : sql.ref(`number_${place}`)
}

function moment(attribute: string, { places }: Known): RawBuilder<unknown> {
  const place = places.get(attribute)
  return place === undefined ? numberOf(momentTrait(attribute)) : sql.ref(`moment_${place}`)
}

function numberOf(trait: string): RawBuilder<unknown> {
  return sql`cast(traits ->> cast(${trait} as text) as double precision)`
}

function real(value: number): RawBuilder<unknown> {
  return sql`cast(${value} as double precision)`
}

/** A missing value satisfies the negation. */
function maybeNot(value: RawBuilder<unknown>, comparison: RawBuilder<unknown>, isNot: boolean): Condition {
  return isNot
    ? sql<boolean>`(${value} is null or not ${value} ${comparison})`
    : sql<boolean>`${value} ${comparison}`
}
