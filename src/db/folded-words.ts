/** SQL for searching names of which a workspace has few: tags, segments, templates. */
import { sql, type RawBuilder } from 'kysely'

/**
 * Matches names containing every word, in the column `name_folded`, which holds the name folded by `core/fold.ts`. `%` and `_` are literal.
 *
 * @param words from `searchWords`; without any, every name matches
 */
export function foldedHasWords(words: readonly string[]): RawBuilder<boolean> {
  if (words.length === 0) return sql<boolean>`1 = 1`
  const patterns = words.map(word => `%${word.replace(/[\\%_]/g, '\\$&')}%`)
  return sql<boolean>`(${sql.join(
    patterns.map(pattern => sql`name_folded like ${pattern} escape '\\'`),
    sql` and `,
  )})`
}

/** Text inside a pattern of LIKE with `escape '!'`. */
export function likeText(text: string): string {
  return text.replace(/[!%_]/g, '!$&')
}
