/** Migrations: a database is brought to this program's schema, or refused with words that help. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import type { Database } from '../../src/db/database.js'
import { migrateToLatest, SchemaError } from '../../src/db/migrate.js'
import { MIGRATIONS } from '../../src/db/migrations.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { listMessages } from '../../src/msa/log/message-log-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase, sqliteDatabase, sqliteFile } from '../support/db/database.js'
import { migrateFile, MIGRATION_NAMES, openForMigration } from '../support/db/migrating.js'
import { insertRows } from '../support/db/rows.js'
import { schemaAfterMigrations } from '../support/db/schema.js'
import { MIGRATION_ROWS } from './migration-rows.js'

const noteMigration = (database: Database, name: string) =>
  database.write(({ db }) =>
    sql`insert into schema_migrations (name, timestamp) values (${name}, '2026-01-05')`.execute(db),
  )

t.test('the schema is the one in schema.snapshot.sql', async t => {
  const snapshot = readFileSync(join(process.cwd(), 'test/db/schema.snapshot.sql'), 'utf8')
  const schema = await schemaAfterMigrations(sqliteFile(t))
  t.equal(schema, snapshot, 'meant? then write it anew: node build/test/db/write-schema-snapshot.js')
})

t.test('migrations are numbered from 1 without a gap, in the order of the list', async t => {
  const names = Object.keys(MIGRATIONS)
  t.same(
    names.map(name => Number(/^(\d{4})-[a-z0-9-]+$/.exec(name)?.[1])),
    names.map((_, at) => at + 1),
  )
})

eachDatabase(t, 'migrating again changes nothing', async (t, database) => {
  t.same(await migrateToLatest(database.reader, database.dialect), [])
  t.same(await migrateToLatest(database.reader, database.dialect, false), [])
})

t.test('an empty database gets every migration, in order', async t => {
  const db = new Kysely<Tables>({ dialect: sqliteDialect(new BetterSqlite(sqliteFile(t))).dialect })
  t.teardown(() => db.destroy())
  t.same(await migrateToLatest(db, 'sqlite'), Object.keys(MIGRATIONS))
})

eachDatabase(t, 'a schema of a newer program is refused, naming what is unknown', async (t, database) => {
  await noteMigration(database, '9999-time-travel')
  for (const mayMigrate of [true, false])
    await t.rejects(
      migrateToLatest(database.reader, database.dialect, mayMigrate),
      new SchemaError(
        'the database was written by a newer Postroad (it has schema change 9999-time-travel); ' +
          'install that version again, or restore a backup made with this one',
      ),
    )
})

t.test('a server does not open a newer database', async t => {
  const file = sqliteFile(t)
  const database = await openSqlite({ file, clock: new FakeClock() })
  await noteMigration(database, '9999-time-travel')
  await database[Symbol.asyncDispose]()
  await t.rejects(openSqlite({ file, clock: new FakeClock() }), { name: 'SchemaError' })
})

t.test('an older schema is refused by whoever may not migrate, and left as it was', async t => {
  const file = sqliteFile(t)
  await t.rejects(
    openSqlite({ file, clock: new FakeClock(), mayMigrate: false }),
    new SchemaError('the database has an older schema; run `postroad migrate` first'),
  )
  const handle = new BetterSqlite(file, { readonly: true })
  t.equal(handle.prepare('select count(*) from sqlite_schema').pluck().get(), 0)
  handle.close()
})

t.test('a database at the latest schema opens without the right to migrate', async t => {
  const file = sqliteFile(t)
  await sqliteDatabase(t, file)
  const second = await openSqlite({ file, clock: new FakeClock(), mayMigrate: false })
  await second[Symbol.asyncDispose]()
})

t.test('messages of an older schema are found by their recipient', async t => {
  const file = sqliteFile(t)
  const [first = ''] = MIGRATION_NAMES
  await migrateFile(file, first)
  const older = openForMigration(file)
  const rows = MIGRATION_ROWS[first]?.after ?? {}
  await insertRows(older, rows)
  await older.destroy()
  const [{ id, workspace_id: workspaceId, recipient } = {}] = rows['messages'] ?? []
  const database = await openSqlite({ file, clock: new FakeClock() })
  t.teardown(() => database[Symbol.asyncDispose]())
  const filter = { to: String(recipient).toLowerCase() }
  const found = await listMessages(database.reader, String(workspaceId), filter, { limit: 100, offset: 0 })
  t.match(found, { total: 1, items: [{ id, recipient }] })
})
