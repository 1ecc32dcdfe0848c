/**
 * SQL of contact search: folded words (`fold.ts`), each of which must occur in the address or names.
 *
 * A trigram index yields candidates, whose text is then checked. SQLite uses an FTS5 table, which is cheap to fill in bulk and expensive
 * per row: imports index their contacts at once (`indexNew`), other contacts are indexed later in batches (`fillSearch`, called by
 * `search-consumer.ts`). Unindexed contacts are always candidates. PostgreSQL maintains its index itself. There are no wildcards: `%` and
 * `_` match literally.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf } from '../../db/database.js'
import type { Queries } from '../../db/database.js'
import { compilable, inLists, statement } from '../../db/statement.js'
import { type SeqRange } from '../audience-store.js'

/** Shortest word that the index can find. */
const MIN_WORD = 3
/** With more candidates than this, scanning all contacts is faster. */
const MAX_CANDIDATES = 5_000
/** Trigrams per query: a very common one would make the index visit nearly all contacts. */
const MAX_PARTS = 4
/** A trigram's frequency is estimated by how far into the index its match number `MET` lies. */
const MET = 64

/** Whether a contact has every word; for a statement on `contacts`. */
export function hasWords(db: Queries, words: readonly string[]): RawBuilder<boolean> {
  const position = sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')
  return sql<boolean>`(${sql.join(
    words.map(word => sql`${position}(search_text, ${word}) > 0`),
    sql` and `,
  )})`
}

/**
 * Index candidates for these words, and contacts not indexed yet; for a statement on `contacts`, together with `hasWords`.
 *
 * @returns undefined if a scan is as fast: words too short or too common
 */
export async function candidates(
  db: Queries,
  range: SeqRange,
  words: readonly string[],
): Promise<RawBuilder<boolean> | undefined> {
  const parts = [...new Set(words.flatMap(trigrams))]
  if (parts.length === 0) return undefined
  if (dialectOf(db) === 'postgres')
    return sql<boolean>`contact_trigrams(search_text) @> ${sql.val(parts)}::text[]`
  const unknown = sql`select seq from contacts where is_indexed = 0 and seq between ${range.first} and ${range.last}`
  const inOrder = await rarestFirst(db, parts)
  // The rarest trigrams nearly always suffice; common ones may be rare only in combination.
  for (const asked of new Set([Math.min(MAX_PARTS, parts.length), parts.length])) {
    const match = inOrder.slice(0, asked).map(quoted).join(' AND ')
    const named = sql`select rowid from contact_search where contact_search match ${match} and rowid between ${range.first} and ${range.last}`
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from (
        select * from (${named} limit ${MAX_CANDIDATES + 1}) union all select * from (${unknown} limit ${MAX_CANDIDATES + 1})
      )`.execute(db)
    if ((rows[0]?.count ?? 0) <= MAX_CANDIDATES) return sql<boolean>`seq in (${named} union all ${unknown})`
  }
  return undefined
}

/** Sorts by the position of match number `MET` in the index; trigrams with fewer matches come first. */
async function rarestFirst(db: Queries, parts: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ at: number }>`
    select parts.key as at from json_each(${JSON.stringify(parts.map(quoted))}) as parts
    order by (select rowid from contact_search where contact_search match parts.value
      order by rowid limit 1 offset ${MET - 1}) desc nulls first`.execute(db)
  return rows.flatMap(({ at }) => parts[at] ?? [])
}

/** As an FTS5 string. */
function quoted(part: string): string {
  return `"${part.replaceAll('"', '""')}"`
}

/** Counted in code points, as in SQL. */
function trigrams(word: string): string[] {
  const letters = Array.from(word)
  return letters.length < MIN_WORD
    ? []
    : letters.slice(0, 1 - MIN_WORD).map((_, at) => letters.slice(at, at + MIN_WORD).join(''))
}

/** Removes contacts from the index, before their text changes or they are deleted. */
export async function forgetSearchTexts(db: Queries, seqs: readonly number[]): Promise<void> {
  if (dialectOf(db) === 'postgres') return
  for (const list of inLists(seqs)) {
    const which = sql`seq in (${sql.join(list)}) and is_indexed = 1`
    await sql`
      insert into contact_search (contact_search, rowid, search_text)
      select 'delete', seq, search_text from contacts where ${which}`.execute(db)
    await sql`update contacts set is_indexed = 0 where ${which}`.execute(db)
  }
}

/** Pages merged per indexed contact: just enough to keep the index in a few segments. */
const MERGED_EACH = 0.5

const insertTexts = statement((db, { first, last }: { first: number; last: number }) =>
  compilable(
    db,
    sql`
      insert into contact_search (rowid, search_text)
      select seq, search_text from contacts where seq between ${first} and ${last} order by seq`,
  ),
)

/** Indexes new contacts with consecutive numbers that were inserted with `is_indexed` set. */
export async function indexNew(db: Queries, { first, last }: SeqRange): Promise<void> {
  if (dialectOf(db) === 'postgres') return
  await insertTexts(db, { first, last })
  await mergeIndex(db, last - first + 1)
}

const mergePages = statement((db, { pages }: { pages: number }) =>
  compilable(db, sql`insert into contact_search (contact_search, rank) values ('merge', ${pages})`),
)

/** @param taken number of contacts indexed */
async function mergeIndex(db: Queries, taken: number): Promise<void> {
  await mergePages(db, { pages: Math.ceil(MERGED_EACH * taken) })
}

const selectUnknown = statement(db =>
  // A literal, since the partial index does not match a parameter.
  compilable(db, sql`select seq from contacts where is_indexed = 0 limit 1`),
)

export async function knowsAll(db: Queries): Promise<boolean> {
  return (await selectUnknown(db, {})).rows.length === 0
}

/**
 * Indexes unindexed contacts, oldest first, and merges a proportional number of pages.
 *
 * @returns number of contacts
 */
export async function fillSearch(db: Queries, limit: number): Promise<number> {
  if (dialectOf(db) === 'postgres') return 0
  const { rows } = await sql<{ seq: number }>`
    select seq from contacts where is_indexed = 0 order by seq limit ${limit}`.execute(db)
  if (rows.length === 0) return 0
  const which = sql`seq in (${sql.join(rows.map(({ seq }) => seq))})`
  await sql`
    insert into contact_search (rowid, search_text) select seq, search_text from contacts where ${which} order by seq`.execute(
    db,
  )
  await sql`update contacts set is_indexed = 1 where ${which}`.execute(db)
  await mergeIndex(db, rows.length)
  return rows.length
}
