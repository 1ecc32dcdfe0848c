/**
 * SQL of who is in which list and has which tag: pairs of a thing and a contact, by their numbers.
 *
 * A thing's count is of its contacts that are not deleted, and changes in the same call as its pairs; a deleted contact keeps its
 * pairs while it can be restored. One contact is with a thing once. What is done for many contacts is a few statements.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../db/database.js'
import { rowsInsert } from '../db/insert-rows.js'
import { compilable, inLists, inPieces, rowsStatement, statement } from '../db/statement.js'
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

/** Lists or tags: where their pairs are, and where they are counted. */
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

/** Statements on the pairs of each kind, printed once. */
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

/** @returns numbers of the contacts that were not there */
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

/** The same for contacts that were made in this transaction and are in nothing yet: nobody has to be asked which were there. */
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
  statement((db, { seq, contacts }: { seq: number; contacts: readonly number[] }) =>
    compilable(
      db,
      sql`delete from ${sql.table(pairs)} where ${sql.ref(thing)} = ${seq} and contact in (${sql.join(contacts)})
      returning contact`,
    ),
  ),
)

/** @returns numbers of the contacts that were there */
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

/** Of each thing its number, and by how much its count changes. */
const addToCounts = ofEach(({ things, count }) =>
  rowsStatement((db, rows) => {
    const tuples = rows.map(([seq, by]) => sql`(cast(${seq} as bigint), cast(${by} as integer))`)
    return compilable(
      db,
      sql`update ${sql.table(things)} set ${sql.ref(count)} = ${sql.ref(count)} + changes.column2
      from (values ${sql.join(tuples)}) as changes where seq = changes.column1`,
    )
  }),
)

async function changeCount(db: Queries, kind: PairKind, seq: number, by: number): Promise<void> {
  if (by !== 0) await addToCounts[kind.pairs](db, [[seq, by]])
}

const countByThing = ofEach(({ pairs, thing }) =>
  statement((db, { contacts }: { contacts: readonly number[] }) =>
    compilable(
      db,
      sql`select ${sql.ref(thing)} as thing, count(*) as count from ${sql.table(pairs)}
      where contact in (${sql.join(contacts)}) group by ${sql.ref(thing)}`,
    ),
  ),
)

/** Contacts are deleted (-1) or restored (1): what they are in and have is counted anew. */
export async function recount(db: Queries, contacts: readonly number[], by: 1 | -1): Promise<void> {
  for (const kind of [LIST_MEMBERS, CONTACT_TAGS]) {
    const changes = new Map<number, number>()
    for (const list of inLists(contacts)) {
      const { rows } = await countByThing[kind.pairs](db, { contacts: list })
      for (const { thing, count } of rows as { thing: number; count: number }[])
        changes.set(thing, (changes.get(thing) ?? 0) + count)
    }
    const rows = Array.from(changes, ([thing, count]) => [thing, by * count])
    for (const piece of inPieces(rows)) await addToCounts[kind.pairs](db, piece)
  }
}

/** Of contacts that go for good; they are counted no more, or it was seen to. */
export async function deletePairsOf(db: Queries, contacts: readonly number[]): Promise<void> {
  for (const { pairs } of [LIST_MEMBERS, CONTACT_TAGS])
    for (const list of inLists(contacts))
      await sql`delete from ${sql.table(pairs)} where contact in (${sql.join(list)})`.execute(db)
}

/** What each of the contacts is in or has, by name. */
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

/** Contacts of a thing, those made last first. @param total as it is counted */
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
  if (reading.limit === 0) return { items: [], total }
  const { rows } = await sql<{ contact: number }>`
    ${live} order by contact ${sql.raw(reading.order)} limit ${reading.limit} offset ${reading.offset}`.execute(
    db,
  )
  return { ...(await listing(inShownOrder(rows, reading).map(({ contact }) => contact))), total }
}

/** A list or a tag as rules know it. */
export interface NamedSeq {
  readonly seq: number
  readonly id: string
  /** Its name, folded. */
  readonly folded: string
  /** Contacts that are in it or have it. */
  readonly contacts: number
  /** Of a dynamic list. */
  readonly conditions?: Conditions
}

/** For a statement on all `contacts` of a range: those with at least one of the things. */
export function isWithAny(
  { pairs, thing }: PairKind,
  things: readonly number[],
  { first, last }: SeqRange,
): RawBuilder<boolean> {
  return sql<boolean>`seq in (
    select contact from ${sql.table(pairs)}
    where ${sql.ref(thing)} in (${sql.join(things)}) and contact between ${first} and ${last})`
}

/** The same of one thing, whatever other conditions there are: asked for each contact by the key of pairs, which may be many. */
export function isWith({ pairs, thing }: PairKind, seq: number): RawBuilder<boolean> {
  return sql<boolean>`exists (
    select 1 from ${sql.table(pairs)} as pairs where ${sql.ref(`pairs.${thing}`)} = ${seq} and pairs.contact = contacts.seq)`
}

/** The most things that a contact is looked for in one by one: of more of them, all that it is in or has is gone through. */
const LOOKED_FOR = 2

/** The same, for a statement on few of them. */
export function hasAny({ pairs, thing }: PairKind, things: readonly number[]): RawBuilder<boolean> {
  // With a plus no index is chosen for it, so that it is the one by contact.
  const one = things.length > LOOKED_FOR ? sql`+pairs.${sql.ref(thing)}` : sql`pairs.${sql.ref(thing)}`
  return sql<boolean>`exists (
    select 1 from ${sql.table(pairs)} as pairs
    where ${one} in (${sql.join(things)}) and pairs.contact = contacts.seq)`
}

/**
 * A step of taking apart what was deleted as a whole: the pairs of a deleted thing, and with the last of them the thing.
 *
 * @param limit rows at most @returns how many rows went
 */
export async function deletePairsOfDeleted(
  db: Queries,
  { pairs, thing, things }: PairKind,
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ seq: number }>`
    select seq from ${sql.table(things)} where deleted_at is not null order by seq limit 1`.execute(db)
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
  const last = contacts.at(-1)?.contact ?? 0
  await sql`
    delete from ${sql.table(pairs)} where ${sql.ref(thing)} = ${deleted.seq} and contact <= ${last}`.execute(
    db,
  )
  return contacts.length
}
