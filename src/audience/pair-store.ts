/**
 * SQL of list members and tags: pairs of a thing (list or tag) and a contact, by number.
 *
 * A thing's count covers its contacts that are not deleted and changes in the same call as its pairs. A deleted contact keeps its pairs
 * while it can be restored, and so does a deleted thing, whose count stays current. Pairs are unique. Each function runs a few statements, however many contacts it gets.
 */
import { sql, type RawBuilder } from 'kysely'
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'
import { rowsInsert } from '../db/insert-rows.js'
import { inLists, inPieces, statement, type Rows } from '../db/statement.js'
import type { Listing, Page } from '../http/pagination.js'
import type { SeqRange } from './audience-store.js'
import type { Contact, Named } from './contacts/contact.js'
import { findContactsBySeq } from './contacts/contact-store.js'
import { inShownOrder, readingOf } from './paging.js'
import type { Conditions } from './segments/conditions.js'

interface PairRow {
  contact: number
  added_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    list_members: PairRow & { list: number }
    contact_tags: PairRow & { tag: number }
  }
}

/** Lists or tags: their tables and columns. */
export interface PairKind {
  readonly pairs: 'list_members' | 'contact_tags'
  readonly thing: 'list' | 'tag'
  readonly things: 'lists' | 'tags'
  readonly count: 'member_count' | 'contact_count'
}

export const LIST_MEMBERS: PairKind = {
  pairs: 'list_members',
  thing: 'list',
  things: 'lists',
  count: 'member_count',
}
export const CONTACT_TAGS: PairKind = {
  pairs: 'contact_tags',
  thing: 'tag',
  things: 'tags',
  count: 'contact_count',
}

/** Prepares one statement per kind. */
function ofEach<T>(make: (kind: PairKind) => T): Readonly<Record<PairKind['pairs'], T>> {
  return { list_members: make(LIST_MEMBERS), contact_tags: make(CONTACT_TAGS) }
}

const insertPairs = ofEach(({ pairs, thing }) =>
  rowsInsert({
    table: pairs,
    columns: () => [thing, 'contact', 'added_at'],
    rest: sql`on conflict do nothing returning contact`,
  }),
)

/** @returns numbers of the contacts that were added */
export async function addPairs(
  db: Queries,
  kind: PairKind,
  thingSeq: number,
  contacts: readonly number[],
  at: number,
): Promise<number[]> {
  const rows = contacts.map(contact => [thingSeq, contact, at])
  const added = contactNumbers(await insertPairs[kind.pairs](db, rows))
  await changeCount(db, kind, thingSeq, added.length)
  return added
}

const insertNewPairs = ofEach(({ pairs, thing }) =>
  rowsInsert({ table: pairs, columns: () => [thing, 'contact', 'added_at'] }),
)

/** `addPairs` for contacts created in this transaction: skips the check for existing pairs. */
export async function addPairsOfNew(
  db: Queries,
  kind: PairKind,
  thingSeq: number,
  contacts: readonly number[],
  at: number,
): Promise<void> {
  const rows = contacts.map(contact => [thingSeq, contact, at])
  await insertNewPairs[kind.pairs](db, rows)
  await changeCount(db, kind, thingSeq, rows.length)
}

function contactNumbers(rows: readonly unknown[]): number[] {
  return (rows as readonly { readonly contact: number }[]).map(({ contact }) => contact)
}

const deletePairs = ofEach(({ pairs, thing }) =>
  statement(
    (_, { seq, contacts }: { seq: number; contacts: readonly number[] }) =>
      sql`delete from ${sql.table(pairs)} where ${sql.ref(thing)} = ${seq} and contact in (${sql.join(contacts)})
      returning contact`,
  ),
)

/** @returns numbers of the contacts that were removed */
export async function removePairs(
  db: Queries,
  kind: PairKind,
  thingSeq: number,
  contacts: readonly number[],
): Promise<number[]> {
  const removed: number[] = []
  for (const list of inLists(contacts))
    removed.push(
      ...contactNumbers((await deletePairs[kind.pairs](db, { seq: thingSeq, contacts: list })).rows),
    )
  await changeCount(db, kind, thingSeq, -removed.length)
  return removed
}

/** Applies count changes, keyed by thing. */
const addToCounts = ofEach(({ things, count }) =>
  statement((_, { rows }: Rows) => {
    const tuples = rows.map(([seq, by]) => sql`(cast(${seq} as bigint), cast(${by} as integer))`)
    return sql`update ${sql.table(things)} set ${sql.ref(count)} = ${sql.ref(count)} + changes.column2
      from (values ${sql.join(tuples)}) as changes where seq = changes.column1`
  }),
)

async function changeCount(db: Queries, kind: PairKind, seq: number, by: number): Promise<void> {
  if (by !== 0) await addToCounts[kind.pairs](db, { rows: [[seq, by]] })
}

const countByThing = ofEach(({ pairs, thing }) =>
  statement(
    (_, { contacts }: { contacts: readonly number[] }) =>
      sql`select ${sql.ref(thing)} as thing, count(*) as count from ${sql.table(pairs)}
      where contact in (${sql.join(contacts)}) group by ${sql.ref(thing)}`,
  ),
)

/** Adjusts the counts of all things of contacts that are deleted (-1) or restored (1). */
export async function recount(db: Queries, contacts: readonly number[], by: 1 | -1): Promise<void> {
  for (const kind of [LIST_MEMBERS, CONTACT_TAGS]) {
    const changes = new Map<number, number>()
    for (const list of inLists(contacts)) {
      const { rows } = await countByThing[kind.pairs](db, { contacts: list })
      for (const { thing, count } of rows as { thing: number; count: number }[])
        changes.set(thing, (changes.get(thing) ?? 0) + count)
    }
    const rows = Array.from(changes, ([thing, count]) => [thing, by * count])
    for (const piece of inPieces(rows)) await addToCounts[kind.pairs](db, { rows: piece })
  }
}

/** For permanent deletion. Leaves the counts alone; the caller has adjusted them. */
export async function deletePairsOf(db: Queries, contacts: readonly number[]): Promise<void> {
  for (const { pairs } of [LIST_MEMBERS, CONTACT_TAGS])
    for (const list of inLists(contacts))
      await sql`delete from ${sql.table(pairs)} where contact in (${sql.join(list)})`.execute(db)
}

/** The lists or tags of each contact, by name. */
export async function thingsOf(
  db: Queries,
  { pairs, thing, things }: PairKind,
  contacts: readonly number[],
): Promise<ReadonlyMap<number, readonly Named[]>> {
  const found = new Map<number, Named[]>(contacts.map(contact => [contact, []]))
  for (const list of inLists(contacts)) {
    const { rows } = await sql<Named & { contact: number }>`
      select contact, things.id as id, things.name as name from ${sql.table(pairs)} as pairs
      inner join ${sql.table(things)} as things on things.seq = pairs.${sql.ref(thing)}
      where contact in (${sql.join(list)}) and things.deleted_at is null
      order by things.name, things.seq`.execute(db)
    for (const { contact, id, name } of rows) found.get(contact)?.push({ id, name })
  }
  return found
}

/** Contacts of a thing, newest first. @param total the thing's count */
export async function listPairs(
  db: Queries,
  { pairs, thing }: PairKind,
  thingSeq: number,
  total: number,
  page: Page,
): Promise<Listing<Contact>> {
  const live = sql`select contact from ${sql.table(pairs)} as pairs
    where ${sql.ref(thing)} = ${thingSeq}
      and exists (select 1 from contacts where seq = pairs.contact and deleted_at is null)`
  const listing = async (seqs: readonly number[]) => ({
    items: await findContactsBySeq(db, seqs),
    end: seqs.slice(-1),
  })
  if (page.after) {
    const [last] = page.after.position('number')
    const { rows } = await sql<{ contact: number }>`
      ${live} and contact < ${last} order by contact desc limit ${page.limit + 1}`.execute(db)
    const shown = rows.slice(0, page.limit).map(({ contact }) => contact)
    return { ...(await listing(shown)), total: page.after.total, hasMore: rows.length > page.limit }
  }
  const reading = readingOf(page, total)
  if (reading.limit === 0) return { items: [], total, end: undefined }
  const { rows } = await sql<{ contact: number }>`
    ${live} order by contact ${sql.raw(reading.order)} limit ${reading.limit} offset ${reading.offset}`.execute(
    db,
  )
  return { ...(await listing(inShownOrder(rows, reading).map(({ contact }) => contact))), total }
}

/** A list or tag as rules reference it. */
export interface NamedSeq {
  readonly seq: number
  readonly id: string
  /** Folded name. */
  readonly folded: string
  /** Number of contacts with it. */
  readonly contacts: number
  /** Of a dynamic list. */
  readonly conditions?: Conditions
}

/** For statements on a whole range of `contacts`: those with at least one of the things. */
export function isWithAny(
  { pairs, thing }: PairKind,
  things: readonly number[],
  { first, last }: SeqRange,
): RawBuilder<boolean> {
  return sql<boolean>`seq in (
    select contact from ${sql.table(pairs)}
    where ${sql.ref(thing)} in (${sql.join(things)}) and contact between ${first} and ${last})`
}

/** For one thing, whatever the other conditions: looks each contact up by the key of pairs, of which there may be many. */
export function isWith({ pairs, thing }: PairKind, seq: number): RawBuilder<boolean> {
  return sql<boolean>`exists (
    select 1 from ${sql.table(pairs)} as pairs where ${sql.ref(`pairs.${thing}`)} = ${seq} and pairs.contact = contacts.seq)`
}

/** Up to this many things are looked up one by one; for more, all pairs of the contact are read. */
const LOOKED_FOR = 2

/** `isWithAny` for statements on few contacts. */
export function hasAny({ pairs, thing }: PairKind, things: readonly number[]): RawBuilder<boolean> {
  // The unary plus keeps SQLite from using an index on this column, so that it uses the one by contact.
  const one = things.length > LOOKED_FOR ? sql`+pairs.${sql.ref(thing)}` : sql`pairs.${sql.ref(thing)}`
  return sql<boolean>`exists (
    select 1 from ${sql.table(pairs)} as pairs
    where ${one} in (${sql.join(things)}) and pairs.contact = contacts.seq)`
}

/**
 * Deletes some pairs of lists or tags that were deleted before a moment; a thing is deleted with its last pair.
 *
 * @param limit maximum rows @returns rows deleted
 */
export async function deletePairsOfDeleted(
  db: Queries,
  { pairs, thing, things }: PairKind,
  before: number,
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ seq: number }>`
    select seq from ${sql.table(things)} where deleted_at < ${before} order by deleted_at, seq limit 1`.execute(
    db,
  )
  const [deleted] = rows
  if (!deleted) return 0
  const { rows: contacts } = await sql<{ contact: number }>`
    select contact from ${sql.table(pairs)} where ${sql.ref(thing)} = ${deleted.seq} order by contact limit ${limit}`.execute(
    db,
  )
  if (contacts.length === 0) {
    await sql`delete from ${sql.table(things)} where seq = ${deleted.seq}`.execute(db)
    return 1
  }
  const last = must(contacts.at(-1), 'the last contact').contact
  await sql`
    delete from ${sql.table(pairs)} where ${sql.ref(thing)} = ${deleted.seq} and contact <= ${last}`.execute(
    db,
  )
  return contacts.length
}
