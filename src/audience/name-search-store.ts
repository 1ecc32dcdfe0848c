/** SQL of the search in names of tags and segments, of which a workspace has few. */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../db/database.js'
import { dialectOf } from './audience-store.js'

/** Each word stands somewhere in the column `name_folded`; nothing in them is a wildcard. */
export function foldedHasWords(db: Queries, words: readonly string[]): RawBuilder<boolean> {
  const position = sql.raw(dialectOf(db) === 'sqlite' ? 'instr' : 'strpos')
  return sql<boolean>`(${sql.join(
    words.map(word => sql`${position}(name_folded, ${word}) > 0`),
    sql` and `,
  )})`
}
