/**
 * SQL of the search for contacts: words, each of which stands somewhere in address or names, folded (`fold.ts`).
 *
 * An index knows by three letters in a row which contacts may have a word; those are then looked into. SQLite's is a table of
 * its own (FTS5), cheap to fill with many at a time and dear one by one: imports put their contacts into it at once (`indexNew`), others
 * get into it afterwards and in steps (`fillSearch`, by the consumer of `search-consumer.ts`); those that are not in it yet are looked into
 * as well. PostgreSQL keeps its own. Nothing here understands wildcards: `%` and `_` are letters.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf } from '../../db/dialect.js'
import type { Queries } from '../../db/database.js'
import { compilable, inLists, statement } from '../../db/statement.js'
import { type SeqRange } from '../audience-store.js'

/** Letters that the index knows a word by. */
const LEAST = 3
/** Contacts that the index may name before it is quicker to look into all. */
const MOST_CANDIDATES = 5_000
/** Parts that the index is asked for: each of those that nearly all contacts have would be gone through for all of them. */
const MOST_PARTS = 4
/** The part that is met for so many a time late in the index is rare. */
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
 * The contacts that the index names for these words, and those that it does not know yet; for a statement on `contacts`, beside
 * `hasWords`.
 *
 * @returns undefined where looking into all of them is no more work: words too short, or too common
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
  // The rarest are nearly always enough; only of common letters all together may be rare.
  for (const asked of new Set([Math.min(MOST_PARTS, parts.length), parts.length])) {
    const match = inOrder.slice(0, asked).map(quoted).join(' AND ')
    const named = sql`select rowid from contact_search where contact_search match ${match} and rowid between ${range.first} and ${range.last}`
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from (
        select * from (${named} limit ${MOST_CANDIDATES + 1}) union all select * from (${unknown} limit ${MOST_CANDIDATES + 1})
      )`.execute(db)
    if ((rows[0]?.count ?? 0) <= MOST_CANDIDATES) return sql<boolean>`seq in (${named} union all ${unknown})`
  }
  return undefined
}

/** By how far one has to go in the index until so many contacts have it; what fewer have comes first. */
async function rarestFirst(db: Queries, parts: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ at: number }>`
    select parts.key as at from json_each(${JSON.stringify(parts.map(quoted))}) as parts
    order by (select rowid from contact_search where contact_search match parts.value
      order by rowid limit 1 offset ${MET - 1}) desc nulls first`.execute(db)
  return rows.flatMap(({ at }) => parts[at] ?? [])
}

/** As a text that the index is asked for. */
function quoted(part: string): string {
  return `"${part.replaceAll('"', '""')}"`
}

/** Three characters each, as SQL counts them. */
function trigrams(word: string): string[] {
  const letters = Array.from(word)
  return letters.length < LEAST
    ? []
    : letters.slice(0, 1 - LEAST).map((_, at) => letters.slice(at, at + LEAST).join(''))
}

/** Before their text changes, or they go. */
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

/** Pages that are merged for each contact that the index takes in: as few as keep it in a handful of pieces. */
const MERGED_EACH = 0.5

const insertTexts = statement((db, { first, last }: { first: number; last: number }) =>
  compilable(
    db,
    sql`
      insert into contact_search (rowid, search_text)
      select seq, search_text from contacts where seq between ${first} and ${last} order by seq`,
  ),
)

/** Of contacts that were just made, with `is_indexed` set, and have numbers in a row. */
export async function indexNew(db: Queries, { first, last }: SeqRange): Promise<void> {
  if (dialectOf(db) === 'postgres') return
  await insertTexts(db, { first, last })
  await mergeIndex(db, last - first + 1)
}

const mergePages = statement((db, { pages }: { pages: number }) =>
  compilable(db, sql`insert into contact_search (contact_search, rank) values ('merge', ${pages})`),
)

/** @param taken how many contacts were taken in */
async function mergeIndex(db: Queries, taken: number): Promise<void> {
  await mergePages(db, { pages: Math.ceil(MERGED_EACH * taken) })
}

const selectUnknown = statement(db =>
  // Written out: an index of some rows serves only what surely asks for these.
  compilable(db, sql`select seq from contacts where is_indexed = 0 limit 1`),
)

/** Whether all contacts are in the index. */
export async function knowsAll(db: Queries): Promise<boolean> {
  return (await selectUnknown(db, {})).rows.length === 0
}

/**
 * Takes contacts into the index that it does not know, those made first first, and merges what lies in it by as much.
 *
 * @returns how many
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
