/**
 * Databases for tests: a temporary SQLite file, and the same tables on PostgreSQL (PGlite), each brought up to date by
 * the real migrations. `eachDatabase` runs a test on both, since a store has to mean the same on either.
 */
import { join } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import { Kysely } from 'kysely'
import type { Test } from 'tap'
import type { Database } from '../../src/db/database.js'
import { GroupCommit } from '../../src/db/group-commit.js'
import { migrateToLatest } from '../../src/db/migrate.js'
import { openSqlite } from '../../src/db/open-sqlite.js'
import type { Tables } from '../../src/db/tables.js'
import { FakeClock } from '../../src/world/fake-clock.js'
import { openPglite, pgliteDialect } from './pglite-dialect.js'

/** A fresh database in a file of its own, closed and removed with the test. */
export async function sqliteDatabase(t: Test, file = sqliteFile(t)): Promise<Database> {
  const database = await openSqlite({ file, clock: new FakeClock() })
  t.teardown(() => database[Symbol.asyncDispose]())
  return database
}

/** Path for a database of this test; its folder is removed with the test. */
export function sqliteFile(t: Test): string {
  return join(t.testdir(), 'test.db')
}

/** One per test file: starting it takes seconds. */
let postgres: PGlite | undefined

async function postgresDatabase(): Promise<Database> {
  postgres ??= openPglite()
  await postgres.exec('drop schema public cascade; create schema public')
  const db = new Kysely<Tables>({ dialect: pgliteDialect(postgres) })
  await migrateToLatest(db, 'postgres')
  const groups = new GroupCommit(db, new FakeClock())
  return {
    dialect: 'postgres',
    reader: db,
    write: work => groups.write(work),
    hasForeignWrites: () => false,
    async [Symbol.asyncDispose]() {
      await groups.idle()
      await db.destroy()
    },
  }
}

/**
 * Declares a test twice, on SQLite and on PostgreSQL. A file that calls this ends with `closePostgres(t)`.
 *
 * @param name a sentence of behaviour, the same on both
 */
export function eachDatabase(
  t: Test,
  name: string,
  test: (t: Test, database: Database) => Promise<void>,
): void {
  void t.test(`${name} (SQLite)`, async t => test(t, await sqliteDatabase(t)))
  void t.test(`${name} (PostgreSQL)`, async t => {
    const database = await postgresDatabase()
    t.teardown(() => database[Symbol.asyncDispose]())
    await test(t, database)
  })
}

/** Ends this file's PostgreSQL with its last test. */
export function closePostgres(t: Test): void {
  t.teardown(async () => {
    await postgres?.close()
  })
}
