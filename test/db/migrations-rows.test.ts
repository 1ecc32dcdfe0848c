/**
 * Every migration on a database with rows, on SQLite and PostgreSQL, and after a kill between any two of its statements.
 *
 * Covers all migrations and one that exists in tests only. Their rows are in `migration-rows.ts`.
 */
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import { migrateToLatest } from '../../src/db/migrate.js'
import type { Dialect } from '../../src/db/database.js'
import type { Tables } from '../../src/db/tables.js'
import { endWithTest } from '../support/program/children.js'
import {
  migrateFile,
  MIGRATION_NAMES,
  NEXT_MIGRATION,
  openForMigration,
  upTo,
} from '../support/db/migrating.js'
import { openPglite, pgliteDialect } from '../support/db/pglite-dialect.js'
import { often } from '../support/long.js'
import { insertRows, readAllRows, sorted, type ReadRow, type ReadRows } from '../support/db/rows.js'
import { MIGRATION_ROWS, type MigrationRows } from './migration-rows.js'

const ALL = [...MIGRATION_NAMES, NEXT_MIGRATION]
const PROGRAM = join(process.cwd(), 'build/test/support/db/migrate-and-die.js')

const NEXT_ROWS: MigrationRows = {
  become: { lists: [{ id: 'list', name: 'News', language: 'en' }], list_notes: [{ list: 1, note: 'News' }] },
  changes: ['visits'],
}

function rowsOf(name: string): MigrationRows {
  const rows = name === NEXT_MIGRATION ? NEXT_ROWS : MIGRATION_ROWS[name]
  if (!rows) throw new Error(`${name} needs rows in test/db/migration-rows.ts`)
  return rows
}

t.test('every migration has rows to be tested with, and what they become', t => {
  t.same(Object.keys(MIGRATION_ROWS), MIGRATION_NAMES)
  for (const [name, { become }] of Object.entries(MIGRATION_ROWS).slice(1))
    t.not(Object.keys(become).length, 0, name)
  t.end()
})

async function goThroughAll(t: Test, db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  for (const name of ALL) {
    const { before = {}, become, after = {}, changes = [] } = rowsOf(name)
    await insertRows(db, before)
    const old = await readAllRows(db)
    t.same(emptyTables(old), [], `each table has a row before ${name}`)
    t.same(await migrateToLatest(db, dialect, true, upTo(name)), [name])
    const found = await readAllRows(db)
    for (const [table, rows] of old) compareKept(t, `${name}: ${table}`, table, rows, found, changes)
    for (const [table, rows] of Object.entries(become))
      for (const row of rows)
        t.ok(has(found.get(table) ?? [], row), `${name}: ${table} ${JSON.stringify(row)}`)
    await insertRows(db, after)
  }
  t.same(emptyTables(await readAllRows(db)), [], 'each table has a row for what comes next')
}

function emptyTables(read: ReadRows): string[] {
  return [...read].filter(([, rows]) => rows.length === 0).map(([table]) => table)
}

/** Nothing may be lost or altered but what the migration is for. */
function compareKept(
  t: Test,
  what: string,
  table: string,
  old: readonly ReadRow[],
  found: ReadRows,
  changes: readonly string[],
): void {
  if (changes.includes(table)) return
  const rows = found.get(table)
  if (!rows) {
    t.fail(`${what} is gone`)
    return
  }
  const columns = Object.keys(old[0] ?? {}).filter(
    column => column in (rows[0] ?? {}) && !changes.includes(`${table}.${column}`),
  )
  t.same(sorted(rows, columns), sorted(old, columns), what)
}

function has(rows: readonly ReadRow[], wanted: Readonly<Record<string, unknown>>): boolean {
  return rows.some(row => Object.entries(wanted).every(([column, value]) => row[column] === value))
}

t.test('every migration keeps the rows that are there, and fills what it adds (SQLite)', async t => {
  const db = openForMigration(join(t.testdir(), 'mail.db'))
  t.teardown(() => db.destroy())
  await goThroughAll(t, db, 'sqlite')
})

t.test('every migration keeps the rows that are there, and fills what it adds (PostgreSQL)', async t => {
  const postgres = openPglite()
  t.teardown(() => postgres.close())
  await goThroughAll(t, new Kysely<Tables>({ dialect: pgliteDialect(postgres) }), 'postgres')
})

/** The files as they lie there at this moment: what a killed process leaves. The wal-index is made anew from them. */
function copyDatabase(from: string, to: string): void {
  copyFileSync(from, to)
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${to}-wal`)
}

function digestOf(file: string): string {
  const hash = createHash('sha256').update(readFileSync(file))
  if (existsSync(`${file}-wal`)) hash.update('log').update(readFileSync(`${file}-wal`))
  return hash.digest('hex')
}

/** Everything that can be seen of a database; when a migration was made is not part of it. */
function contentOf(file: string): Record<string, unknown> {
  const handle = new BetterSqlite(file)
  const all = (text: string) => handle.prepare(text).all() as ReadRow[]
  const tables = all("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
  const content = {
    schema: all('select type, name, sql from sqlite_schema order by name'),
    migrations: all('select name from schema_migrations order by name'),
    faults: [...all('pragma integrity_check'), ...all('pragma foreign_key_check')],
    rows: tables
      .map(({ name }) => String(name))
      .filter(name => name !== 'schema_migrations')
      .sort()
      .map(name => [name, all(`select * from ${name}`)]),
  }
  handle.close()
  return content
}

/** Fills a database as it exists right before a migration. */
async function prepareFor(name: string, file: string): Promise<void> {
  const db = openForMigration(file)
  for (const earlier of ALL.slice(0, ALL.indexOf(name))) {
    await insertRows(db, rowsOf(earlier).before ?? {})
    await migrateToLatest(db, 'sqlite', true, upTo(earlier))
    await insertRows(db, rowsOf(earlier).after ?? {})
  }
  await insertRows(db, rowsOf(name).before ?? {})
  await db.destroy()
}

for (const name of ALL)
  t.test(
    `a database whose process was killed between any two statements of ${name} starts again`,
    async t => {
      const folder = t.testdir()
      const file = join(folder, 'mail.db')
      await prepareFor(name, file)
      // Where nothing has been written in between, the same is left.
      const left = new Map<string, string>()
      let statements = 0
      await migrateFile(file, name, () => {
        const copy = join(folder, `killed-${statements}.db`)
        copyDatabase(file, copy)
        left.set(digestOf(copy), copy)
        statements += 1
      })
      t.ok(statements > 5, `${statements} statements`)
      const whole = contentOf(file)
      const copies = [...left.values()]
      const step = Math.ceil(copies.length / often(4, Infinity)) || 1
      for (const copy of copies.filter((_, at) => at % step === 0 || at === copies.length - 1)) {
        await migrateFile(copy, name)
        t.strictSame(contentOf(copy), whole, basename(copy))
      }
    },
  )

t.test('a real kill -9 at the beginning, in the middle and before the commit leaves the same', async t => {
  const folder = t.testdir()
  const before = join(folder, 'mail.db')
  await prepareFor(NEXT_MIGRATION, before)
  const whole = join(folder, 'whole.db')
  copyDatabase(before, whole)
  let statements = 0
  let commit = 0
  await migrateFile(whole, NEXT_MIGRATION, sql => {
    if (sql === 'commit') commit = statements
    statements += 1
  })
  for (const fatal of [0, Math.floor(commit / 2), commit - 1, commit]) {
    mkdirSync(join(folder, String(fatal)))
    const file = join(folder, String(fatal), 'mail.db')
    copyDatabase(before, file)
    const child = fork(PROGRAM, [file, NEXT_MIGRATION, String(fatal)])
    endWithTest(t, child)
    const [, signal] = (await once(child, 'exit')) as [unknown, string | null]
    t.equal(signal, 'SIGKILL')
    await migrateFile(file, NEXT_MIGRATION)
    t.strictSame(contentOf(file), contentOf(whole), `killed before statement ${fatal} of ${statements}`)
  }
})
