/** SQL of the search in names, of which a workspace has few: tags, segments, templates. */
import { sql, type RawBuilder } from 'kysely'

/**
 * Each word stands somewhere in the column `name_folded`, which holds the name as `core/fold.ts` folds it. `%` and `_` are letters.
 *
 * @param words as `searchWords` gives them; without any, every name matches
 */
export function foldedHasWords(words: readonly string[]): RawBuilder<boolean> {
  if (words.length === 0) return sql<boolean>`1 = 1`
  const patterns = words.map(word => `%${word.replace(/[\\%_]/g, '\\$&')}%`)
  return sql<boolean>`(${sql.join(
    patterns.map(pattern => sql`name_folded like ${pattern} escape '\\'`),
    sql` and `,
  )})`
}
