/**
 * SQL of the search for contacts: words, each of which stands somewhere in address or names, folded (`fold.ts`).
 *
 * An index knows by three letters in a row which contacts may have a word; those are then looked into. SQLite's is a table of
 * its own (FTS5) that costs more to fill than the contacts themselves, so that contacts get into it afterwards and in steps
 * (`fillSearch`, by the consumer of `search-consumer.ts`); those that are not in it yet are looked into as well. PostgreSQL keeps its own. Nothing here
 * understands wildcards: `%` and `_` are letters.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import { dialectOf, type SeqRange } from '../audience-store.js'

/** Letters that the index knows a word by. */
const LEAST = 3
/** Contacts that the index may name before it is quicker to look into all. */
const MOST_CANDIDATES = 5_000

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
  const match = parts.map(part => `"${part.replaceAll('"', '""')}"`).join(' AND ')
  const named = sql`select rowid from contact_search where contact_search match ${match} and rowid between ${range.first} and ${range.last}`
  const unknown = sql`select seq from contacts where is_indexed = 0 and seq between ${range.first} and ${range.last}`
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (
      select * from (${named} limit ${MOST_CANDIDATES + 1}) union all select * from (${unknown} limit ${MOST_CANDIDATES + 1})
    )`.execute(db)
  if ((rows[0]?.count ?? 0) > MOST_CANDIDATES) return undefined
  return sql<boolean>`seq in (${named} union all ${unknown})`
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
  await sql`insert into contact_search (contact_search, rank) values ('merge', ${Math.ceil(MERGED_EACH * rows.length)})`.execute(
    db,
  )
  return rows.length
}
