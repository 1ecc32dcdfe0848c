/**
 * SQL of contact search: folded words (`fold.ts`), each of which must occur in the address or names.
 *
 * A trigram index yields candidates, whose text is then checked. On SQLite it is an FTS5 table that triggers maintain; on PostgreSQL a
 * GIN index. There are no wildcards: `%` and `_` match literally.
 */
import { sql, type RawBuilder } from 'kysely'
import { must } from '../../core/must.js'
import { dialectOf, type Queries } from '../../db/database.js'
import { statement } from '../../db/statement.js'
import type { SeqRange } from '../audience-store.js'

/** Shortest word that the index can find. */
const MIN_WORD = 3
/** With more candidates than this, scanning all contacts is faster. */
const MAX_CANDIDATES = 20_000
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
 * Index candidates for these words; for a statement on `contacts`, together with `hasWords`.
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
  const inOrder = await rarestFirst(db, parts)
  // The rarest trigrams nearly always suffice; common ones may be rare only in combination.
  for (const asked of new Set([Math.min(MAX_PARTS, parts.length), parts.length])) {
    const match = inOrder.slice(0, asked).map(quoted).join(' AND ')
    const named = sql`select rowid from contact_search where contact_search match ${match} and rowid between ${range.first} and ${range.last}`
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from (${named} limit ${MAX_CANDIDATES + 1})`.execute(db)
    if (must(rows[0], 'the count').count <= MAX_CANDIDATES) return sql<boolean>`seq in (${named})`
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

const mergePages = statement(
  (_, { pages }: { pages: number }) =>
    sql`insert into contact_search (contact_search, rank) values ('merge', ${pages})`,
)

/**
 * Merges a few pages of the SQLite index after texts were written. FTS5's own merging would do the same work in bursts of up to
 * 0.1 s inside whichever write comes next.
 *
 * @param texts number of texts written or deleted
 */
export async function mergeSearchIndex(db: Queries, texts: number): Promise<void> {
  if (texts > 0 && dialectOf(db) === 'sqlite') await mergePages(db, { pages: Math.ceil(texts / 2) })
}
