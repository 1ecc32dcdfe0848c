/** A SQLite file on its way through the migrations, one by one and statement by statement. */
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import { migrateToLatest } from '../../../src/db/migrate.js'
import { MIGRATIONS } from '../../../src/db/migrations.js'
import { sqliteDialect } from '../../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../../src/db/tables.js'
import { watched } from './statement-by-statement.js'

/** Pages of the cache: so few that what is not committed yet reaches the log. */
const SMALL_CACHE = 10

export const MIGRATION_NAMES: readonly string[] = Object.keys(MIGRATIONS)

/** The migrations to this one. */
export function upTo(name: string) {
  return Object.fromEntries(
    Object.entries(MIGRATIONS).slice(0, MIGRATION_NAMES.indexOf(name) + 1),
  ) as typeof MIGRATIONS
}

/** As the program opens it for migrating. @param before called with each statement before it runs */
export function openForMigration(file: string, before: (sql: string) => void = () => {}): Kysely<Tables> {
  const handle = new BetterSqlite(file)
  handle.pragma('journal_mode = WAL')
  // A process that is killed takes nothing with it that it has written; only a machine would.
  handle.pragma('synchronous = OFF')
  handle.pragma('foreign_keys = ON')
  handle.pragma(`cache_size = ${SMALL_CACHE}`)
  return new Kysely<Tables>({ dialect: watched(sqliteDialect(handle).dialect, before) })
}

/** @returns what was applied */
export async function migrateFile(
  file: string,
  name: string,
  before?: (sql: string) => void,
): Promise<readonly string[]> {
  const db = openForMigration(file, before)
  try {
    return await migrateToLatest(db, 'sqlite', true, upTo(name))
  } finally {
    await db.destroy()
  }
}
