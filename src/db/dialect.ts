/** Which database statements are run on, for where SQL cannot be the same. */
import { PostgresAdapter } from 'kysely'
import type { Dialect, Queries } from './database.js'

export function dialectOf(db: Queries): Dialect {
  return db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite'
}
