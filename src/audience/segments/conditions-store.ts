/**
 * Compiles conditions read by `read-conditions.ts` to SQL on the table `contacts`, for both databases.
 *
 * Values from rules are always parameters; column names come from this file. Within a group, cheap tests run first: flags and moments, then
 * texts, lists and tags, then attributes. A negated test also matches where the field is missing: it is true or false, never null.
 */
import { sql, type RawBuilder } from 'kysely'
import { findTimezone } from '../../accounts/timezone-store.js'
import { AppError } from '../../core/errors.js'
import { dialectOf, type Dialect, type Queries } from '../../db/database.js'
import { findAudience, type SeqRange } from '../audience-store.js'
import { findNamedLists } from '../lists/list-store.js'
import { CONTACT_TAGS, hasAny, isWithAny, LIST_MEMBERS, type NamedSeq } from '../pair-store.js'
import { findNamedTags } from '../tags/tag-store.js'
import type { Conditions } from './conditions.js'
import {
  readConditions,
  type Group,
  type MomentField,
  type Test,
  type TextField,
  type ThingsField,
} from './read-conditions.js'
import { compileDateTest, isDateTest } from './date-tests-store.js'
import { historyOf } from './rule-history.js'
import {
  attributeValues,
  compileValueTest,
  real,
  SIGNS,
  withAttribute,
  type Condition,
  type Values,
} from './value-tests-store.js'

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
export interface ConditionContext {
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
  /** IANA name; set only if there are rules on dates. */
  readonly timezone: string
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

/** @returns the condition for each range of contacts; resolves lists, tags and the workspace's time zone now */
export async function conditionsOf(
  db: Queries,
  group: Group,
  { workspaceId, now }: ConditionContext,
): Promise<(range: SeqRange, reach: Reach) => Condition> {
  const things = new Set(thingsFields(group))
  const known: Known = {
    dialect: dialectOf(db),
    workspaceId,
    now,
    timezone: things.has('lists') || hasDates(group) ? await findTimezone(db, workspaceId) : 'UTC',
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

function hasDates({ parts }: Group): boolean {
  return parts.some(part => ('parts' in part ? hasDates(part) : isDateTest(part)))
}

function compileGroup(group: Group, known: Known, aim: Aim): Condition {
  if (group.parts.length === 0) return NOBODY
  const within = { ...aim, isNarrowed: aim.isNarrowed || (group.isAll && group.parts.length > 1) }
  const parts = group.parts.map(part =>
    'parts' in part
      ? { cost: COSTS.group, condition: compileGroup(part, known, within) }
      : { cost: costOf(part), condition: compileTest(part, known, within) },
  )
  const inOrder = parts.sort((a, b) => a.cost - b.cost).map(({ condition }) => condition)
  return sql<boolean>`(${sql.join(inOrder, group.isAll ? sql` and ` : sql` or `)})`
}

const COSTS = { column: 0, text: 1, things: 2, attribute: 3, group: 4 } as const

function costOf(test: Test): number {
  const isOfPurchases = 'of' in test && 'moment' in test.of && test.of.moment === 'last_purchase_at'
  if (attributeOfTest(test) !== undefined || isOfPurchases) return COSTS.attribute
  if (test.kind === 'purchases' || test.kind === 'product') return COSTS.attribute
  if (test.kind === 'things' || test.kind === 'campaign') return COSTS.things
  return test.kind === 'text' || test.kind === 'text_order' ? COSTS.text : COSTS.column
}

function attributeOfTest(test: Test): string | undefined {
  if ('attribute' in test) return test.attribute
  return 'of' in test && 'attribute' in test.of ? test.of.attribute : undefined
}

function compileTest(test: Test, known: Known, aim: Aim): Condition {
  aim.budget.left -= 1
  if (aim.budget.left < 0) throw tooLarge(`have more than ${MAX_TESTS} rules`)
  const attribute = attributeOfTest(test)
  const isMet =
    attribute === undefined
      ? compileFieldTest(test, known, aim)
      : withAttribute(compileValue(test, attributeValues(attribute, known.dialect), known))
  return 'isNot' in test && test.isNot ? sql<boolean>`(${isMet}) is not true` : isMet
}

/** Tests on fields of the contact, without negation. */
function compileFieldTest(test: Test, known: Known, aim: Aim): Condition {
  const { workspaceId } = known
  switch (test.kind) {
    case 'campaign': {
      const range = aim.reach === 'all' ? aim.range : undefined
      return historyOf('campaigns').isAmong(test.field, workspaceId, test.ids, range)
    }
    case 'purchases': {
      const purchases = historyOf('purchases')
      const value =
        test.field === 'purchase_count' ? purchases.count(workspaceId) : purchases.total(workspaceId)
      const sign = test.order === 'equals' ? sql`=` : SIGNS[test.order]
      return sql<boolean>`${value} ${sign} ${real(test.value)}`
    }
    case 'product':
      return historyOf('purchases').hasBought(known.dialect, workspaceId, test.products)
    case 'truth':
      if (test.values.length === 0) return NOBODY
      return sql<boolean>`${sql.ref(test.field === 'bounced' ? 'is_bounced' : 'subscribed')} in (${sql.join(
        test.values.map(value => sql.lit(value ? 1 : 0)),
      )})`
    case 'things':
      return compileThings(test, known, aim)
    default:
      return compileValue(test, fieldValues(test, known), known)
  }
}

function compileValue(test: Test, values: Values, known: Known): Condition {
  return isDateTest(test)
    ? compileDateTest(test, values, known)
    : compileValueTest(test, values, known.dialect)
}

function fieldValues(test: Test, known: Known): Values {
  const of = sourceOf(test)
  const text = of && 'field' in of ? sql.ref(TEXT_COLUMNS[of.field]) : sql`null`
  const moment = of && 'moment' in of ? ownMoment(of.moment, known) : sql`null`
  const isThere =
    of && 'moment' in of ? sql<boolean>`${moment} is not null` : sql<boolean>`${text} is not null`
  return { isThere, text, number: sql`null`, moment }
}

function sourceOf(test: Test) {
  if ('of' in test) return test.of
  return test.kind === 'moment' || test.kind === 'moment_is' ? { moment: test.field } : undefined
}

function ownMoment(field: MomentField, { workspaceId }: Known): RawBuilder<unknown> {
  return field === 'last_purchase_at' ? historyOf('purchases').lastAt(workspaceId) : sql.ref(field)
}

/** Below this share of the audience, members are read first and other contacts skipped. */
const RARE = 1 / 8

/**
 * Reads all members of a thing if they are few, or if no other rule runs first; otherwise looks up membership for each contact that matches
 * the other rules.
 */
function compileThings(
  { field, names }: Extract<Test, { kind: 'things' }>,
  known: Known,
  aim: Aim,
): Condition {
  const named = known[field].filter(({ id, folded, conditions }) =>
    // `is_set` on lists concerns static lists only.
    names === undefined ? conditions === undefined : names.has(id) || names.has(folded),
  )
  if (named.length === 0) return NOBODY
  const fixed = named.filter(({ conditions }) => conditions === undefined)
  const any = [
    ...(fixed.length > 0 ? [compileMembers(field, fixed, known, aim)] : []),
    ...named.flatMap(list => (list.conditions ? [compileList(list.seq, list.conditions, known, aim)] : [])),
  ]
  return sql<boolean>`(${sql.join(any, sql` or `)})`
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
