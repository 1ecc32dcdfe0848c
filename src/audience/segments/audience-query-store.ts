/**
 * SQL of the contacts that match conditions: their number, how many can be mailed, and the contacts.
 *
 * Scans all contacts piece by piece in `Database.slowReader` (`scan-store.ts`); automations test given contacts, or a range of at most a
 * few thousand. Fails: AppError unavailable on timeout.
 */
import { sql, type RawBuilder } from 'kysely'
import { must } from '../../core/must.js'
import { dialectOf, type Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import { contactsOf, findAudience, type Audience, type SeqRange } from '../audience-store.js'
import type { Contact } from '../contacts/contact.js'
import { findContactsBySeq } from '../contacts/contact-store.js'
import { hasAny, isWithAny, LIST_MEMBERS } from '../pair-store.js'
import {
  liveContacts,
  countPieces,
  eachPiece,
  listFromCursor,
  listFromPieces,
  NEWEST_FIRST,
  piecesOf,
  type Patience,
} from '../scan-store.js'
import { conditionsOf, type ConditionContext, type Reach } from './conditions-store.js'
import { hasAttribute } from './value-tests-store.js'
import type { Group } from './read-conditions.js'
import { inLists } from '../../db/statement.js'

export interface Estimate {
  readonly count: number
  /** Subscribed, not bounced, not suppressed. */
  readonly mailable: number
  readonly unsubscribed: number
  /** Subscribed contacts only. */
  readonly bounced: number
}

const NOBODY: Estimate = { count: 0, mailable: 0, unsubscribed: 0, bounced: 0 }

/** Counts of one piece, or of all. */
interface Tally extends Omit<Estimate, 'mailable'> {
  /** Suppressed by domain, otherwise mailable. */
  readonly ofSuppressedDomain: number
}

const NONE: Tally = { count: 0, unsubscribed: 0, bounced: 0, ofSuppressedDomain: 0 }

export async function estimate(
  db: Queries,
  who: Selection,
  context: ConditionContext,
  checkTimeout: Patience,
): Promise<Estimate> {
  return (await estimateWithSample(db, who, context, 0, checkTimeout)).estimate
}

/** Estimates, and finds the newest matching contacts. @param count maximum size of the sample */
export async function estimateWithSample(
  db: Queries,
  who: Selection,
  context: ConditionContext,
  count: number,
  checkTimeout: Patience,
): Promise<{ readonly estimate: Estimate; readonly sample: readonly Contact[] }> {
  const meant = await whereOf(db, who, context)
  if (!meant) return { estimate: NOBODY, sample: [] }
  const { addresses, domains } = await countSuppressions(db, context.workspaceId)
  const isOfSuppressedDomain = domains === 0 ? sql<boolean>`1 = 0` : isOfDomain(db, context)
  const tallies = await eachPiece(meant.pieces, checkTimeout, async piece => {
    const { rows } = await sql<Tally>`
      select count(*) as count, count(*) filter (where subscribed = 0) as unsubscribed,
        count(*) filter (where subscribed = 1 and is_bounced = 1) as bounced,
        count(*) filter (where ${IS_REACHABLE} and ${isOfSuppressedDomain}) as "ofSuppressedDomain"
      from ${liveContacts(db)} where ${sql.join(meant.where(piece), sql` and `)}`.execute(db)
    return rows[0] ?? NONE
  })
  const sum = (of: (one: Tally) => number) => tallies.reduce((total, one) => total + of(one), 0)
  const [all, unsubscribed, bounced] = [
    sum(one => one.count),
    sum(one => one.unsubscribed),
    sum(one => one.bounced),
  ]
  const mailable = all - unsubscribed - bounced - sum(one => one.ofSuppressedDomain)
  const suppressed =
    mailable === 0 || addresses === 0
      ? 0
      : await countSuppressed(db, meant, isOfSuppressedDomain, context, checkTimeout)
  const matching = meant.pieces.filter((_, at) => (tallies[at]?.count ?? 0) > 0)
  return {
    estimate: { count: all, mailable: mailable - suppressed, unsubscribed, bounced },
    sample: await newestOf(db, meant, matching, count, checkTimeout),
  }
}

async function newestOf(
  db: Queries,
  { where }: Meant,
  pieces: readonly SeqRange[],
  count: number,
  checkTimeout: Patience,
): Promise<Contact[]> {
  const seqs: number[] = []
  for (const piece of pieces) {
    if (seqs.length >= count) break
    checkTimeout()
    const { rows } = await sql<{ seq: number }>`
      select seq from ${liveContacts(db)} where ${sql.join(where(piece), sql` and `)}
      order by seq desc limit ${count - seqs.length}`.execute(db)
    seqs.push(...rows.map(({ seq }) => seq))
  }
  return findContactsBySeq(db, seqs)
}

const IS_REACHABLE = sql<boolean>`subscribed = 1 and is_bounced = 0`

/** Suppressions per piece, for some ten milliseconds each. */
export const SUPPRESSIONS_PER_PIECE = 4_000

/**
 * Counts otherwise mailable contacts that are suppressed by address. Iterates over the suppressions: there are few compared to contacts, and
 * most of their contacts are already unsubscribed or bounced.
 */
async function countSuppressed(
  db: Queries,
  { audience, where }: Meant,
  isOfSuppressedDomain: RawBuilder<boolean>,
  { workspaceId }: ConditionContext,
  checkTimeout: Patience,
): Promise<number> {
  const all = contactsOf(audience.number)
  const ranges = await suppressionRanges(db, workspaceId, checkTimeout)
  const counted = await eachPiece(ranges, checkTimeout, async isInRange => {
    // Collects numbers by the address index, then reads rows in number order.
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from ${liveContacts(db)}
      where seq in (
          select seq from contacts where audience = ${audience.number} and deleted_at is null
            and email in (select email from suppressions where workspace_id = ${workspaceId} and ${isInRange}))
        and ${IS_REACHABLE} and not ${isOfSuppressedDomain} and ${sql.join(where(all, 'some'), sql` and `)}`.execute(
      db,
    )
    return must(rows[0], 'the count').count
  })
  return counted.reduce((total, count) => total + count, 0)
}

/** Splits the suppressed addresses into ranges, in index order. */
async function suppressionRanges(
  db: Queries,
  workspaceId: string,
  checkTimeout: Patience,
): Promise<RawBuilder<boolean>[]> {
  const ranges: RawBuilder<boolean>[] = []
  let isAfterLast = sql<boolean>`1 = 1`
  for (;;) {
    checkTimeout()
    const { rows } = await sql<{ email: string }>`
      select email from suppressions where workspace_id = ${workspaceId} and ${isAfterLast}
      order by email limit 1 offset ${SUPPRESSIONS_PER_PIECE - 1}`.execute(db)
    const [end] = rows
    if (!end) return [...ranges, isAfterLast]
    ranges.push(sql<boolean>`${isAfterLast} and email <= ${end.email}`)
    isAfterLast = sql<boolean>`email > ${end.email}`
  }
}

async function countSuppressions(db: Queries, workspaceId: string) {
  const { rows } = await sql<{ addresses: number; domains: number }>`
    select count(*) filter (where email not like '@%') as addresses,
      count(*) filter (where email like '@%') as domains
    from suppressions where workspace_id = ${workspaceId}`.execute(db)
  return rows[0] ?? { addresses: 0, domains: 0 }
}

/** Entries are `@example.com`. Wrong for the few quoted addresses with a second @. */
function isOfDomain(db: Queries, { workspaceId }: ConditionContext): RawBuilder<boolean> {
  return sql<boolean>`${domainOf(db, sql`email`)} in (
    select email from suppressions where workspace_id = ${workspaceId} and email like '@%')`
}

export async function countMatching(
  db: Queries,
  group: Group,
  context: ConditionContext,
  checkTimeout: Patience,
): Promise<number> {
  const meant = await whereOf(db, group, context)
  if (!meant) return 0
  const counted = await countPieces(db, meant.pieces, meant.where, checkTimeout)
  return counted.reduce((total, { count }) => total + count, 0)
}

/**
 * The newest contacts that have the attribute, even an empty one, of the first piece that has any.
 *
 * @returns at most `count`, none if no contact has it
 */
export async function sampleWith(
  db: Queries,
  attribute: string,
  context: ConditionContext,
  count: number,
  checkTimeout: Patience,
): Promise<readonly Contact[]> {
  const isMet = hasAttribute(db, attribute)
  const meant = await whereOf(db, { isMeant: () => isMet }, context)
  const found = new Map<SeqRange, readonly number[]>()
  await eachPiece(meant?.pieces ?? [], checkTimeout, async piece => {
    if (found.size > 0) return
    const { rows } = await sql<{ seq: number }>`
      select seq from ${liveContacts(db)} where ${sql.join(meant?.where(piece) ?? [], sql` and `)}
      order by seq desc limit ${count}`.execute(db)
    if (rows.length > 0)
      found.set(
        piece,
        rows.map(({ seq }) => seq),
      )
  })
  const newest = meant?.pieces.find(piece => found.has(piece))
  return newest ? findContactsBySeq(db, found.get(newest) ?? []) : []
}

/** Newest first. */
export async function listMatching(
  db: Queries,
  group: Group,
  context: ConditionContext,
  page: Page,
  checkTimeout: Patience,
): Promise<Listing<Contact>> {
  const meant = await whereOf(db, group, context)
  if (!meant) return { items: [], total: 0, end: undefined }
  if (!page.after && !page.isUncounted)
    return listFromPieces(db, meant.pieces, meant.where, page, checkTimeout)
  const audience = meant.audience.number
  const where = meant.where(contactsOf(audience), 'some')
  return listFromCursor(db, { audience, order: NEWEST_FIRST, where }, page, checkTimeout)
}

export interface Meant {
  readonly audience: Audience
  readonly pieces: readonly SeqRange[]
  /** @param reach whether the statement scans the range or checks contacts found otherwise */
  readonly where: (range: SeqRange, reach?: Reach) => readonly RawBuilder<boolean>[]
}

/** Whether a mailing reaches a contact, or why not. */
export type Mailability = 'mailable' | 'unsubscribed' | 'bounced' | 'suppressed'

export interface ContactMailability {
  readonly seq: number
  readonly mailability: Mailability
}

/** Matching contacts of a range, in order, with whether marketing mail may be sent to them. @param range at most a few thousand numbers */
export async function listMailability(
  db: Queries,
  who: Selection,
  context: ConditionContext,
  range: SeqRange,
): Promise<readonly ContactMailability[]> {
  const meant = await whereOf(db, who, context)
  if (!meant) return []
  const { rows } = await sql<ContactMailability>`
    select seq, case when is_suspended = 1 then 'suppressed' when subscribed = 0 then 'unsubscribed' when is_bounced = 1 then 'bounced'
      when exists (select 1 from suppressions where workspace_id = ${context.workspaceId}
        and suppressions.email in (contacts.email, ${domainOf(db, sql`contacts.email`)})) then 'suppressed'
      else 'mailable' end as mailability
    from ${liveContacts(db)} where ${sql.join(meant.where(range), sql` and `)} order by seq`.execute(db)
  return rows
}

/** `@` and the domain. */
function domainOf(db: Queries, email: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`substr(${email}, ${sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')}(${email}, '@'))`
}

/** Conditions, a static list, an SQL condition on `contacts` of the caller, or contacts in any of some and none of others. */
export type Selection =
  | Group
  | { readonly list: number }
  | { readonly isMeant: Condition }
  | { readonly include: readonly Selection[]; readonly exclude: readonly Selection[] }

/** @param reach whether the statement scans the range or checks contacts found otherwise */
type Condition = (range: SeqRange, reach: Reach) => RawBuilder<boolean>

/** @returns undefined if the audience never had a contact */
export async function whereOf(
  db: Queries,
  who: Selection,
  context: ConditionContext,
): Promise<Meant | undefined> {
  const audience = await findAudience(db, context.workspaceId)
  if (!audience) return undefined
  const conditions = await conditionOf(db, who, context)
  const where = (range: SeqRange, reach: Reach = 'all') => [
    sql<boolean>`seq between ${range.first} and ${range.last}`,
    sql<boolean>`deleted_at is null`,
    conditions(range, reach),
  ]
  return { audience, where, pieces: piecesOf(audience, rulesIn(who)) }
}

async function conditionOf(db: Queries, who: Selection, context: ConditionContext): Promise<Condition> {
  if ('isMeant' in who) return who.isMeant
  if ('include' in who) {
    const included = await anyOf(db, who.include, context)
    const excluded = await anyOf(db, who.exclude, context)
    // A condition that is unknown, since a value is missing, is not met.
    return (range, reach) =>
      sql<boolean>`(${included(range, reach)}) and case when ${excluded(range, reach)} then 0 else 1 end = 1`
  }
  return 'list' in who ? membersOf(who.list) : conditionsOf(db, who, context)
}

async function anyOf(
  db: Queries,
  selections: readonly Selection[],
  context: ConditionContext,
): Promise<Condition> {
  const conditions: Condition[] = []
  for (const one of selections) conditions.push(await conditionOf(db, one, context))
  return (range, reach) =>
    conditions.length === 0
      ? sql<boolean>`1 = 0`
      : sql<boolean>`(${sql.join(
          conditions.map(one => one(range, reach)),
          sql` or `,
        )})`
}

/** How much there is to look at for each contact. */
function rulesIn(who: Selection): number {
  const sum = (all: readonly Selection[]) => all.reduce((rules, one) => rules + rulesIn(one), 0)
  if ('include' in who) return sum([...who.include, ...who.exclude])
  if (!('parts' in who)) return 1
  return who.parts.reduce((rules, part) => rules + ('parts' in part ? rulesIn(part) : 1), 0)
}

function membersOf(list: number) {
  return (range: SeqRange, reach: Reach) =>
    reach === 'all' ? isWithAny(LIST_MEMBERS, [list], range) : hasAny(LIST_MEMBERS, [list])
}

/** @param contacts numbers, of this workspace's audience @returns the matching ones */
export async function findMatching(
  db: Queries,
  group: Group,
  context: ConditionContext,
  contacts: readonly number[],
): Promise<ReadonlySet<number>> {
  const meant = new Set<number>()
  const audience = contacts.length === 0 ? undefined : await findAudience(db, context.workspaceId)
  if (!audience) return meant
  const isMeant = (await conditionsOf(db, group, context))(contactsOf(audience.number), 'some')
  for (const list of inLists(contacts)) {
    const { rows } = await sql<{ seq: number }>`
      select seq from contacts where seq in (${sql.join(list)}) and deleted_at is null and ${isMeant}`.execute(
      db,
    )
    for (const { seq } of rows) meant.add(seq)
  }
  return meant
}

/** Numbers of the matching contacts in the range, in order. */
export async function listMatchingSeqs(
  db: Queries,
  group: Group,
  context: ConditionContext,
  range: SeqRange,
): Promise<number[]> {
  const audience = await findAudience(db, context.workspaceId)
  if (!audience) return []
  const isMeant = (await conditionsOf(db, group, context))(range, 'all')
  const { rows } = await sql<{ seq: number }>`
    select seq from ${liveContacts(db)}
    where seq between ${range.first} and ${range.last} and deleted_at is null and ${isMeant} order by seq`.execute(
    db,
  )
  return rows.map(({ seq }) => seq)
}

/** `listMatchingSeqs`, returning contacts. */
export async function listMatchingContacts(
  db: Queries,
  group: Group,
  context: ConditionContext,
  range: SeqRange,
): Promise<Contact[]> {
  return findContactsBySeq(db, await listMatchingSeqs(db, group, context, range))
}
