/** The database's SQL dialect, for the few places where SQL must differ. */
import { PostgresAdapter } from 'kysely'
import type { Dialect, Queries } from './database.js'

export function dialectOf(db: Queries): Dialect {
  return db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite'
}
