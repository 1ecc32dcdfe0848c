/**
 * SQL of the contact list: search words and filters, newest first or in another order.
 *
 * For `Database.slowReader`, since counting common matches is slow. If a filter selects few contacts, only those are read; otherwise
 * contacts are read along the index of the order. With no filters except flags, counts are known and pages are read from the nearer end.
 */
import { sql, type RawBuilder } from 'kysely'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { isBehind, type KeysetOrder } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'
import { contactsOf, countOf, findAudience, type Audience, type SeqRange } from '../audience-store.js'
import { CONTACT_TAGS, isWith, LIST_MEMBERS, type PairKind } from '../pair-store.js'
import { inShownOrder, readingOf, type Reading } from '../paging.js'
import {
  countPieces,
  listFromCursor,
  listFromPieces,
  NEWEST_FIRST,
  piecesOf,
  walkContacts,
  type Patience,
} from '../scan-store.js'
import { candidates, hasWords } from './search-store.js'
import { conditionsOf } from '../segments/conditions-store.js'
import type { Group } from '../segments/read-conditions.js'
import type { Contact } from './contact.js'
import { CONTACT_COLUMNS, contactFromRow, findContactsBySeq } from './contact-store.js'

interface Paired {
  readonly seq: number
  /** Number of contacts with it. */
  readonly contacts: number
}

/** All of them must match. */
export interface ContactFilter {
  /** Folded; each must occur in the address or names. */
  readonly words?: readonly string[]
  readonly subscribed?: boolean
  readonly bounced?: boolean
  /** Normalized, see `normalizedAddress`. */
  readonly email?: string
  readonly list?: Paired
  readonly tag?: Paired
  /** Conditions of a segment or dynamic list. */
  readonly groups?: readonly Group[]
  /** Ms since epoch UTC, inclusive. */
  readonly createdSince?: number
  readonly updatedSince?: number
  /** Reference time of `groups`; ms since epoch UTC. */
  readonly now?: number
}

export const CONTACT_SORTS = [
  'created_at',
  '-created_at',
  'updated_at',
  '-updated_at',
  'email',
  '-email',
] as const
export type ContactSort = (typeof CONTACT_SORTS)[number]

/** A filter selecting more contacts than this uses the index of the order. */
const MAX_NAMED = 5_000

export interface ContactQuery extends ContactFilter {
  /** Default newest first by number: the same as `-created_at` unless the clock was set back. */
  readonly sort?: ContactSort
}

export async function listContacts(
  db: Queries,
  workspaceId: string,
  { sort, ...filter }: ContactQuery,
  page: Page,
  checkTimeout: Patience,
): Promise<Listing<Contact>> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return { items: [], total: 0, end: undefined }
  const range = contactsOf(audience.number)
  const order = orderOf(sort ?? (filter.createdSince === undefined ? undefined : '-created_at'))
  const isMet = await conditionsBy(db, workspaceId, filter)
  if (isPlain(filter) && order === NEWEST_FIRST && !page.after) {
    const total = countOf(audience, filter)
    const items = await readPage(db, [inRange(range), ...isMet(range)], readingOf(page, total))
    return { items, total, end: items.slice(-1).map(({ seq }) => seq) }
  }
  const named = await namedBy(db, audience.number, filter)
  if (named) return listNamed(db, [named, ...isMet(range)], order, page)
  const walk = { audience: audience.number, order, where: isMet(range), within: withinOf(order, filter) }
  const known = knownCount(audience, filter)
  if (page.after || (page.offset === 0 && (page.isUncounted || known !== undefined))) {
    const listing = await listFromCursor(db, walk, page, checkTimeout)
    return page.after || known === undefined ? listing : { ...listing, total: known }
  }
  const where = (piece: SeqRange) => [inRange(piece), ...isMet(piece)]
  if (order === NEWEST_FIRST) return listFromPieces(db, piecesOf(audience), where, page, checkTimeout)
  const total = known ?? (await countAll(db, audience, where, checkTimeout))
  const found = page.offset < total ? await walkContacts(db, walk, undefined, page, checkTimeout) : []
  const seqs = found.map(({ seq }) => seq)
  return { items: await findContactsBySeq(db, seqs), total, end: found.at(-1)?.position }
}

function orderOf(sort: ContactSort | undefined): KeysetOrder {
  if (sort === undefined) return NEWEST_FIRST
  const direction = sort.startsWith('-') ? 'desc' : 'asc'
  const column = sort.replace('-', '')
  // Addresses are unique, so they need no second column.
  return column === 'email'
    ? { columns: ['email'], kinds: ['text'], direction }
    : { columns: [column, 'seq'], kinds: ['number', 'number'], direction }
}

function isPlain({ words = [], email, list, tag, groups = [], createdSince, updatedSince }: ContactFilter) {
  const others = [email, list, tag, createdSince, updatedSince].filter(one => one !== undefined)
  return words.length + groups.length + others.length === 0
}

/** The count, where maintained counts provide it. */
function knownCount(audience: Audience, filter: ContactFilter): number | undefined {
  if (isPlain(filter)) return countOf(audience, filter)
  const { list, tag, subscribed, bounced, ...others } = filter
  const isOnly = subscribed === undefined && bounced === undefined && isPlain(others)
  return isOnly && !(list && tag) ? (list ?? tag)?.contacts : undefined
}

async function countAll(
  db: Queries,
  audience: Audience,
  where: (piece: SeqRange) => readonly RawBuilder<boolean>[],
  checkTimeout: Patience,
): Promise<number> {
  const counted = await countPieces(db, piecesOf(audience), where, checkTimeout)
  return counted.reduce((total, { count }) => total + count, 0)
}

/** Filter conditions for contacts checked one by one, including that they are not deleted. */
export async function conditionsBy(
  db: Queries,
  workspaceId: string,
  filter: ContactFilter,
): Promise<(range: SeqRange) => readonly RawBuilder<boolean>[]> {
  const { words = [], email, list, tag, groups = [], createdSince, updatedSince, now = 0 } = filter
  const conditions = [
    sql<boolean>`deleted_at is null`,
    ...flagConditions(filter),
    ...(email === undefined ? [] : [sql<boolean>`email = ${email}`]),
    ...(createdSince === undefined ? [] : [sql<boolean>`created_at >= ${createdSince}`]),
    ...(updatedSince === undefined ? [] : [sql<boolean>`updated_at >= ${updatedSince}`]),
    ...(list ? [isWith(LIST_MEMBERS, list.seq)] : []),
    ...(tag ? [isWith(CONTACT_TAGS, tag.seq)] : []),
    ...(words.length === 0 ? [] : [hasWords(db, words)]),
  ]
  const asking = { workspaceId, now }
  const met = await Promise.all(groups.map(group => conditionsOf(db, group, asking)))
  return range => [...conditions, ...met.map(isMet => isMet(range, 'some'))]
}

/** For a filter that an index narrows to few contacts: a condition that enumerates them. */
async function namedBy(
  db: Queries,
  audience: number,
  { email, list, tag, words = [], createdSince, updatedSince }: ContactFilter,
): Promise<RawBuilder<boolean> | undefined> {
  if (email !== undefined) return sql<boolean>`audience = ${audience}`
  const few = [
    ...(list ? [{ kind: LIST_MEMBERS, ...list }] : []),
    ...(tag ? [{ kind: CONTACT_TAGS, ...tag }] : []),
  ].sort((a, b) => a.contacts - b.contacts)[0]
  if (few && few.contacts <= MAX_NAMED) return isAmong(few.kind, few.seq)
  if (words.length > 0) {
    const named = await candidates(db, contactsOf(audience), words)
    if (named) return sql<boolean>`${inRange(contactsOf(audience))} and ${named}`
  }
  for (const [column, since] of [
    ['updated_at', updatedSince],
    ['created_at', createdSince],
  ] as const) {
    if (since === undefined) continue
    const young = sql`select seq from contacts
      where audience = ${audience} and deleted_at is null and ${sql.ref(column)} >= ${since}`
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from (${young} limit ${MAX_NAMED + 1}) as young`.execute(db)
    if (must(rows[0], 'the count').count <= MAX_NAMED) return sql<boolean>`seq in (${young})`
  }
  return undefined
}

function isAmong({ pairs, thing }: PairKind, seq: number): RawBuilder<boolean> {
  return sql<boolean>`seq in (select contact from ${sql.table(pairs)} where ${sql.ref(thing)} = ${seq})`
}

/** For conditions that enumerate few contacts. */
async function listNamed(
  db: Queries,
  conditions: readonly RawBuilder<boolean>[],
  order: KeysetOrder,
  { limit, offset, after, isUncounted }: Page,
): Promise<Listing<Contact>> {
  const columns = sql.join(order.columns.map(column => sql.ref(column)))
  const by = sql.join(order.columns.map(column => sql`${sql.ref(column)} ${sql.raw(order.direction)}`))
  const behind = after ? [isBehind(order, after.position(...order.kinds))] : []
  const { rows } = await sql<Record<string, string | number> & { number: number }>`
    select seq as number, ${columns} from contacts where ${sql.join([...conditions, ...behind], sql` and `)}
    order by ${by} limit ${limit + 1} offset ${after ? 0 : offset}`.execute(db)
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const total = after?.total ?? (isUncounted ? rows.length : await countNamed(db, conditions))
  return {
    items: await findContactsBySeq(
      db,
      shown.map(({ number }) => number),
    ),
    total,
    end: last && order.columns.map(column => last[column] ?? ''),
    hasMore: rows.length > limit,
  }
}

async function countNamed(db: Queries, conditions: readonly RawBuilder<boolean>[]): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from contacts where ${sql.join(conditions, sql` and `)}`.execute(db)
  return must(rows[0], 'the count').count
}

function withinOf({ columns: [column] }: KeysetOrder, { createdSince, updatedSince }: ContactFilter) {
  if (column === 'created_at' && createdSince !== undefined)
    return [sql<boolean>`created_at >= ${createdSince}`]
  if (column === 'updated_at' && updatedSince !== undefined)
    return [sql<boolean>`updated_at >= ${updatedSince}`]
  return []
}

function inRange({ first, last }: SeqRange): RawBuilder<boolean> {
  return sql<boolean>`seq between ${first} and ${last}`
}

/** Literals, so that the partial indexes match. */
function flagConditions({ subscribed, bounced }: ContactFilter): RawBuilder<boolean>[] {
  return [
    ...(subscribed === undefined ? [] : [sql<boolean>`subscribed = ${sql.lit(subscribed ? 1 : 0)}`]),
    ...(bounced === undefined ? [] : [sql<boolean>`is_bounced = ${sql.lit(bounced ? 1 : 0)}`]),
  ]
}

/** A page of the contacts that match conditions on the table `contacts`. */
export async function readPage(
  db: Queries,
  conditions: readonly RawBuilder<boolean>[],
  reading: Reading,
): Promise<Contact[]> {
  if (reading.limit === 0) return []
  const order = sql.raw(reading.order)
  const rows = await db
    .selectFrom('contacts')
    .select(CONTACT_COLUMNS)
    // Finds numbers by an index first: the rows themselves are large.
    .where(
      sql<boolean>`seq in (
        select seq from contacts where ${sql.join(conditions, sql` and `)}
        order by seq ${order} limit ${reading.limit} offset ${reading.offset})`,
    )
    .orderBy('seq', reading.order)
    .execute()
  return inShownOrder(rows, reading).map(contactFromRow)
}

/** Newest first. @param list number of a list they must be in */
export async function listDuplicates(
  db: Queries,
  workspaceId: string,
  list: number | undefined,
  page: Page,
): Promise<Listing<Contact>> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return { items: [], total: 0, end: undefined }
  const { first, last } = contactsOf(audience.number)
  const inList =
    list === undefined ? sql`` : sql`and contact in (select contact from list_members where list = ${list})`
  const repeated = sql`
    select contact from list_members
    where contact between ${first} and ${last} ${inList}
      and list in (select seq from lists where workspace_id = ${workspaceId} and deleted_at is null)
    group by contact having count(*) > 1`
  const isLive = sql`exists (select 1 from contacts where seq = repeated.contact and deleted_at is null)`
  const { limit, offset, after, isUncounted } = page
  const isAfter = after ? sql`and contact < ${after.position('number')[0]}` : sql``
  const { rows } = await sql<{ contact: number }>`
    select contact from (${repeated}) as repeated where ${isLive} ${isAfter}
    order by contact desc limit ${limit + 1} offset ${offset}`.execute(db)
  const seqs = rows.slice(0, limit).map(({ contact }) => contact)
  const count = async () => {
    const { rows: counted } = await sql<{ total: number }>`
      select count(*) as total from (${repeated}) as repeated where ${isLive}`.execute(db)
    return must(counted[0], 'the count').total
  }
  return {
    items: await findContactsBySeq(db, seqs),
    total: after?.total ?? (isUncounted ? rows.length : await count()),
    end: seqs.slice(-1),
    hasMore: rows.length > limit,
  }
}
