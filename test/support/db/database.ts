/**
 * Databases for tests: a temporary SQLite file, and the same tables on PostgreSQL, each brought up to date by the real migrations, once in a
 * process. `eachDatabase` declares a test for both, since a store has to mean the same on either.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ReportedChanges } from '../../../src/db/changes.js'
import { UNWATCHED, type Database } from '../../../src/db/database.js'
import { openSqlite } from '../../../src/db/sqlite/open-sqlite.js'
import { isTransient } from '../../../src/db/faults/transient-error.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { readIfMade, SQLITE_FILE } from './begin-with.js'
import { emptyPostgres, endPostgres } from './postgres.js'
import { POSTGRES_SERVER, realPostgres } from './real-postgres.js'

/** A fresh database in a separate file, closed and removed with the test; what a given file holds already stays. */
export async function sqliteDatabase(t: Test, file = sqliteFile(t)): Promise<Database> {
  if (!existsSync(file)) writeFileSync(file, await migratedSqlite())
  const database = await openSqlite({ file, clock: new FakeClock() })
  t.teardown(() => database[Symbol.asyncDispose]())
  return database
}

/** Path for a database of this test; its folder is removed with the test. */
export function sqliteFile(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'test.db')
}

/** A database after all migrations, as a file: they are twenty times as long as everything else that a fresh one takes. */
export function migratedSqlite(): Promise<Buffer> {
  return (migrated ??= Promise.resolve(readIfMade(SQLITE_FILE) ?? makeSqlite()))
}

let migrated: Promise<Buffer> | undefined

/** Runs the migrations. */
export async function makeSqlite(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-test-'))
  try {
    const file = join(folder, 'test.db')
    const database = await openSqlite({ file, clock: new FakeClock() })
    await database[Symbol.asyncDispose]()
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Each write has its own transaction; the one connection makes them take turns. */
async function pgliteDatabase(t: Test): Promise<Database> {
  const db = await emptyPostgres()
  t.teardown(() => db.destroy())
  const changes = new ReportedChanges()
  return {
    dialect: 'postgres',
    reader: db,
    slowReader: db,
    exportReader: db,
    shared: db,
    storage: UNWATCHED,
    changes,
    isTransient,
    async write(work) {
      const committed: (() => void)[] = []
      const rolledBack: (() => void)[] = []
      try {
        const result = await db.transaction().execute(transaction =>
          work({
            db: transaction,
            changed: topic => committed.push(() => changes.report(topic)),
            onCommit: callback => committed.push(callback),
            onRollback: callback => rolledBack.push(callback),
          }),
        )
        for (const callback of committed) callback()
        return result
      } catch (error) {
        for (const callback of rolledBack) callback()
        throw error
      }
    },
    [Symbol.asyncDispose]: () => db.destroy(),
  }
}

/** On the server if tests have one, else on PGlite. It ends with the last test of the file, which calls `endPostgres`. */
export function postgresDatabase(t: Test): Promise<Database> {
  return POSTGRES_SERVER === undefined ? pgliteDatabase(t) : realPostgres(t)
}

/** `make test-postgres` sets one of the two: PGlite where PostgreSQL is not installed. */
const IS_ON_POSTGRES = POSTGRES_SERVER !== undefined || process.env['TEST_PGLITE'] === '1'

/**
 * Declares a test for both databases: on SQLite in `make test`, on PostgreSQL in `make test-postgres`.
 *
 * @param name a sentence of behaviour, the same on both
 */
export function eachDatabase(
  t: Test,
  name: string,
  test: (t: Test, database: Database) => Promise<void>,
): void {
  if (IS_ON_POSTGRES) onPostgres(t, name, test)
  else void t.test(`${name} (SQLite)`, async t => test(t, await sqliteDatabase(t)))
}

/** Declares a test of what only PostgreSQL has, for `make test-postgres`; nothing in `make test`. */
export function onPostgres(
  t: Test,
  name: string,
  test: (t: Test, database: Database) => Promise<void>,
): void {
  if (!IS_ON_POSTGRES) return
  t.teardown(endPostgres)
  void t.test(`${name} (PostgreSQL)`, async t => test(t, await postgresDatabase(t)))
}
