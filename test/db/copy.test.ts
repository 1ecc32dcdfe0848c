/** Copies between SQLite and PostgreSQL: complete, equal, and nothing where they are not. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { PGlite } from '@electric-sql/pglite'
import { Kysely, sql } from 'kysely'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { commonTables, NOT_COPIED, type Row, type TableShape } from '../../src/db/copy/copied-table.js'
import { copyDatabase, isSame } from '../../src/db/copy/copy-database.js'
import type { CopySide, CopyTarget } from '../../src/db/copy/copy-side.js'
import { postgresSource, postgresTarget, type Session } from '../../src/db/copy/postgres-side.js'
import { RowDigest } from '../../src/db/copy/row-digest.js'
import { openSqliteSource, openSqliteTarget } from '../../src/db/copy/sqlite-side.js'
import type { Queries } from '../../src/db/database.js'
import type { Tables } from '../../src/db/tables.js'
import { POSTGRES_FILE, readIfMade } from '../support/db/begin-with.js'
import { sqliteDatabase } from '../support/db/database.js'
import { openPglite, pgliteDialect } from '../support/db/pglite-dialect.js'
import { insertRows, readAllRows, type ReadRows } from '../support/db/rows.js'
import { postgresSchema, sqliteSchema } from '../support/db/schema.js'
import { migrateToLatest } from '../../src/db/migrate.js'
import { HARD_JSON, HARD_ROWS } from './copy-rows.js'
import { MIGRATION_ROWS } from './migration-rows.js'

const clock = new FakeClock()

/** A migrated database and the one connection to it. */
async function openPostgres(test: Test): Promise<{ pglite: PGlite; db: Kysely<Tables>; session: Session }> {
  const pglite = openPglite(readIfMade(POSTGRES_FILE))
  test.teardown(() => pglite.close())
  const db = new Kysely<Tables>({ dialect: pgliteDialect(pglite) })
  await migrateToLatest(db, 'postgres')
  return {
    pglite,
    db,
    session: {
      query: async (text, values = []) =>
        (await pglite.query<unknown[]>(text, [...values], { rowMode: 'array' })).rows,
      end: async () => {
        await pglite.query('rollback')
      },
    },
  }
}

/** A database with rows in every table, and rows that are hard to copy. */
async function fill(db: Queries): Promise<void> {
  for (const { before = {}, after = {} } of Object.values(MIGRATION_ROWS)) {
    await insertRows(db, before)
    await insertRows(db, after)
  }
  await insertRows(db, HARD_ROWS)
  await sql`insert into contact_attributes (contact, compared) values (4294967303, jsonb(${HARD_JSON}))`.execute(
    db,
  )
  // The highest number of an event was given to one that is gone.
  await sql`delete from events where seq > 1050`.execute(db)
}

async function fillFile(test: Test, file: string): Promise<ReadRows> {
  const database = await sqliteDatabase(test, file)
  await database.write(tx => fill(tx.db))
  const rows = await readAllRows(database.reader)
  await database[Symbol.asyncDispose]()
  return rows
}

/** @returns its number */
async function addEvent(db: Queries): Promise<number | undefined> {
  const { rows } = await sql<{ seq: number }>`
    insert into events (kind, workspace_id, is_sandbox, occurred_at, payload) values ('email.sent', 'w', 0, 1, '{}')
    returning seq`.execute(db)
  return rows[0]?.seq
}

/** Without what is not copied, and with parsed JSON, whose keys have no order. */
function copied(rows: ReadRows): Record<string, unknown> {
  return Object.fromEntries(
    [...rows]
      .filter(([name]) => !NOT_COPIED.has(name) && name !== 'contact_attributes')
      .map(([name, ofTable]) => [name, ofTable]),
  )
}

async function attributes(db: Queries, text: string): Promise<unknown[]> {
  const { rows } = await sql<{ contact: number; text: string }>`
    select contact, ${sql.raw(text)} as text from contact_attributes order by contact`.execute(db)
  return rows.map(row => [row.contact, JSON.parse(row.text)])
}

t.test('from SQLite to PostgreSQL and back, every row of every table is the same', async t => {
  const folder = t.testdir()
  const [first, last] = [join(folder, 'first.db'), join(folder, 'last.db')]
  const rows = await fillFile(t, first)
  t.same(
    [...rows].filter(([, ofTable]) => ofTable.length === 0).map(([name]) => name),
    [],
    'every table has rows to be tested with',
  )
  const { db, session } = await openPostgres(t)
  const schema = await postgresSchema(db)
  {
    await using source = await openSqliteSource(first, clock)
    await using target = await postgresTarget(session)
    const { isEqual, tables } = await copyDatabase({ source, target })
    t.equal(
      isEqual,
      true,
      tables
        .filter(one => !isSame(one))
        .map(({ table }) => table)
        .join(),
    )
    t.equal(tables.find(({ table }) => table === 'events')?.target.rows, 1_050)
  }
  const inPostgres = await readAllRows(db)
  t.strictSame(copied(inPostgres), copied(rows))
  t.same(inPostgres.get('nodes'), [])
  t.same(inPostgres.get('leases'), [])
  t.equal(await postgresSchema(db), schema, 'indexes and references are there again')
  t.equal(await addEvent(db), 1_103, 'numbers of deleted rows are not given again')
  await sql`delete from events where seq > 1050`.execute(db)
  {
    await using source = await postgresSource(session)
    await using target = await openSqliteTarget(last, clock)
    t.equal((await copyDatabase({ source, target })).isEqual, true)
  }
  t.equal(statSync(last).mode & 0o777, 0o600)
  t.same(readdirSync(folder).sort(), ['first.db', 'last.db'])
  const [one, other] = [await sqliteDatabase(t, first), await sqliteDatabase(t, last)]
  t.strictSame(copied(await readAllRows(other.reader)), copied(rows))
  t.strictSame(
    await attributes(other.reader, 'json(compared)'),
    await attributes(one.reader, 'json(compared)'),
  )
  t.strictSame(await attributes(db, 'compared::text'), await attributes(one.reader, 'json(compared)'))
  t.equal(await other.write(tx => addEvent(tx.db)), 1_104)
  const { rows: hits } =
    await sql`select rowid from contact_search where contact_search match '"zoë"'`.execute(other.reader)
  t.equal(hits.length, 2, 'the search index is filled')
  t.equal(await sqliteSchema(other.reader), await sqliteSchema(one.reader))
})

t.test('rows of chance come through as they are', async t => {
  const random = new SeededRandom(37)
  const file = join(t.testdir(), 'first.db')
  const database = await sqliteDatabase(t, file)
  const text = () =>
    String.fromCodePoint(...Array.from(random.bytes(12), octet => 1 + octet * (octet % 5 === 0 ? 300 : 1)))
  await database.write(tx =>
    insertRows(tx.db, {
      suppressions: Array.from({ length: 300 }, (_, at) => ({
        ...{ workspace_id: text(), email: `${at}${text()}`, reason: text(), scope: text() },
        source_message_id: at % 3 === 0 ? null : text(),
        created_at: random.bytes(6).readUIntBE(0, 6) * (at % 2 === 0 ? 1 : -1),
      })),
      captured_mails: Array.from({ length: 50 }, (_, at) => ({
        ...{
          message_id: text(),
          captured_at: at,
          envelope_sender: text(),
          recipient: text(),
          subject: text(),
          size: at,
        },
        raw: random.bytes(at * 40),
      })),
    }),
  )
  const rows = await readAllRows(database.reader)
  await database[Symbol.asyncDispose]()
  const { db, session } = await openPostgres(t)
  {
    await using source = await openSqliteSource(file, clock)
    await using target = await postgresTarget(session)
    t.equal((await copyDatabase({ source, target })).isEqual, true)
  }
  t.strictSame(copied(await readAllRows(db)), copied(rows))
})

t.test('every table is copied, but for those named as belonging to one database', async t => {
  const file = join(t.testdir(), 'first.db')
  const database = await sqliteDatabase(t, file)
  const known = async (db: Queries) =>
    (await db.introspection.getTables({ withInternalKyselyTables: true }))
      .map(({ name }) => name)
      .filter(name => !name.startsWith('contact_search') && !NOT_COPIED.has(name))
      .sort()
  const inFile = await known(database.reader)
  await database[Symbol.asyncDispose]()
  const { db, session } = await openPostgres(t)
  const inPostgres = await known(db)
  await using source = await openSqliteSource(file, clock)
  await using target = await postgresTarget(session)
  const names = commonTables(await source.listTables(), await target.listTables()).map(({ name }) => name)
  t.same(names.sort(), inFile)
  t.same(names, inPostgres)
  t.same(await progressOf(source, target), names, 'and all of them are visited')
})

async function progressOf(source: CopySide & AsyncDisposable, target: CopyTarget): Promise<string[]> {
  const visited = new Set<string>()
  await copyDatabase({ source, target, onProgress: ({ table }) => table === '' || visited.add(table) })
  return [...visited].sort()
}

const shape = (name: string, ...columns: TableShape['columns']): TableShape => ({
  name,
  columns,
  serial: undefined,
})

t.test('databases that differ in tables, columns or types are refused', t => {
  const text = { name: 'id', kind: 'text' } as const
  const lists = shape('lists', text)
  const refused = (source: TableShape[], target: TableShape[], message: RegExp) =>
    t.throws(() => commonTables(source, target), { code: 'conflict', message })
  refused([lists, shape('backup_facts')], [lists], /tables: backup_facts \(source only\)/)
  refused([lists], [lists, shape('more', text)], /tables: more \(target only\)/)
  refused(
    [lists],
    [shape('lists', text, { name: 'xid', kind: 'number' })],
    /columns of lists: xid \(target only\)/,
  )
  refused(
    [lists],
    [shape('lists', { name: 'id', kind: 'number' })],
    /lists.id is text in the source and number/,
  )
  t.end()
})

t.test('a copy that lacks or alters a row is reported and not kept', async t => {
  const folder = t.testdir()
  const file = join(folder, 'first.db')
  await fillFile(t, file)
  const faults: ((table: TableShape, rows: readonly Row[]) => readonly Row[])[] = [
    ({ name }, rows) => (name === 'lists' ? rows.slice(1) : rows),
    ({ name }, rows) => (name === 'jobs' ? rows.map(row => row.with(1, 'other')) : rows),
  ]
  const { db, session } = await openPostgres(t)
  for (const fault of faults)
    for (const open of [
      () => postgresTarget(session),
      () => openSqliteTarget(join(folder, 'copy.db'), clock),
    ]) {
      await using source = await openSqliteSource(file, clock)
      await using target = await open()
      const faulty = Object.assign(Object.create(target) as CopyTarget, {
        write: (table: TableShape, rows: readonly Row[]) => target.write(table, fault(table, rows)),
      })
      const { isEqual, tables } = await copyDatabase({ source, target: faulty })
      t.equal(isEqual, false)
      t.equal(tables.filter(one => one.source.checksum !== one.target.checksum).length, 1)
    }
  t.same(readdirSync(folder), ['first.db'])
  t.ok([...(await readAllRows(db))].every(([, rows]) => rows.length === 0))
})

t.test('a PostgreSQL database with a living node or with rows is refused', async t => {
  const { pglite, session } = await openPostgres(t)
  await pglite.exec(`insert into nodes values ('n', 'mx1.example.net', 'mta', 0, 0, 9007199254740991)`)
  const served = { code: 'conflict', message: /mx1.example.net/ }
  await t.rejects(postgresSource(session), served)
  await t.rejects(postgresTarget(session), served)
  await pglite.exec(
    `update nodes set alive_until = 1; insert into jobs (name, schedule, is_running) values ('a', '*', 0)`,
  )
  await t.rejects(postgresTarget(session), { code: 'conflict', message: /holds data \(table jobs\); drop/ })
  await (await postgresSource(session))[Symbol.asyncDispose]()
})

t.test('a file that is in use, or is there already, is refused', async t => {
  const folder = t.testdir()
  const file = join(folder, 'first.db')
  const database = await sqliteDatabase(t, file)
  await t.rejects(openSqliteSource(file, clock), { code: 'conflict', message: /in use/ })
  await database[Symbol.asyncDispose]()
  await t.rejects(openSqliteTarget(file, clock), { code: 'conflict', message: /exists already/ })
  await t.rejects(openSqliteSource(join(folder, 'none.db'), clock), { code: 'not_found' })
  t.equal(existsSync(join(folder, 'none.db')), false)
})

t.test('text that PostgreSQL cannot store is named, and nothing is kept', async t => {
  const file = join(t.testdir(), 'first.db')
  const database = await sqliteDatabase(t, file)
  await database.write(tx =>
    insertRows(tx.db, { jobs: [{ name: 'old events', schedule: 'a\0b', is_running: 0 }] }),
  )
  await database[Symbol.asyncDispose]()
  const { db, session } = await openPostgres(t)
  {
    await using source = await openSqliteSource(file, clock)
    await using target = await postgresTarget(session)
    await t.rejects(copyDatabase({ source, target }), {
      message: /jobs.schedule holds a NUL character.*old events/,
    })
  }
  t.same((await readAllRows(db)).get('jobs'), [])
})

t.test('checksums depend on every value and not on the order of rows', t => {
  const columns = shape(
    't',
    { name: 'a', kind: 'text' },
    { name: 'b', kind: 'number' },
    { name: 'c', kind: 'octets' },
    { name: 'd', kind: 'json' },
  )
  const digest = (...rows: Row[]) => {
    const sum = new RowDigest(columns)
    for (const row of rows) sum.add(row)
    return sum.result()
  }
  const octets = Buffer.from([1, 2])
  const [one, other]: Row[] = [
    ['x', 1, octets, '{"b":[1,2],"a":null}'],
    ['y', null, null, null],
  ]
  if (!one || !other) throw new Error('no rows')
  const whole = digest(one, other)
  t.same(digest(other, one), whole)
  t.same(digest(one.with(3, '{"a": null, "b": [1.0, 2]}'), other), whole, 'JSON is compared by its meaning')
  for (const [at, value] of [
    ...[[0, 'z'] as const, [0, null] as const, [1, '1'] as const, [1, 1.5] as const],
    ...[[2, Buffer.from([2, 1])] as const, [2, 'AQI='] as const, [3, '{"b":[2,1],"a":null}'] as const],
  ])
    t.not(digest(one.with(at, value), other).checksum, whole.checksum, `${at} ${String(value)}`)
  t.not(digest(one).checksum, whole.checksum)
  t.not(digest(one, one, other).checksum, whole.checksum)
  t.end()
})
