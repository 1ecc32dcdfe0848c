/** A SQLite file on its way through the migrations, one by one and statement by statement. */
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import { migrateToLatest } from '../../../src/db/migrate.js'
import { MIGRATIONS, type Migrations } from '../../../src/db/migrations.js'
import { sqliteDialect } from '../../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../../src/db/tables.js'
import { watched } from './statement-by-statement.js'

/** Pages of the cache: so few that uncommitted pages reach the log. */
const SMALL_CACHE = 10

export const MIGRATION_NAMES: readonly string[] = Object.keys(MIGRATIONS)

/** Exists in tests only, so that some migration always runs on a database with rows. */
export const NEXT_MIGRATION = '9999-test-only'

const WITH_NEXT: Migrations = {
  ...MIGRATIONS,
  async [NEXT_MIGRATION](db) {
    await sql`alter table lists add column language text`.execute(db)
    const { rows } = await sql<{ seq: number; name: string }>`select seq, name from lists`.execute(db)
    for (const { seq, name } of rows)
      await sql`update lists set language = ${name === 'News' ? 'en' : 'de'} where seq = ${seq}`.execute(db)
    await sql`create table list_notes (list bigint primary key, note text not null)`.execute(db)
    await sql`insert into list_notes (list, note) select seq, name from lists`.execute(db)
    await sql`create index lists_by_language on lists (workspace_id, language)`.execute(db)
    await sql`drop table visits`.execute(db)
  },
}

/** The migrations up to this one. */
export function upTo(name: string): Migrations {
  const all = Object.entries(WITH_NEXT)
  return Object.fromEntries(all.slice(0, all.findIndex(([other]) => other === name) + 1))
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
