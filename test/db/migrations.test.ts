/** Migrations: a database is brought to this program's schema, or refused with words that help. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { migrateToLatest, SchemaError } from '../../src/db/migrate.js'
import { MIGRATIONS } from '../../src/db/migrations.js'
import { openSqlite } from '../../src/db/open-sqlite.js'
import { sqliteDialect } from '../../src/db/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { listMessages } from '../../src/msa/message-log-store.js'
import { FakeClock } from '../../src/world/fake-clock.js'
import { eachDatabase, sqliteDatabase, sqliteFile } from '../support/database.js'
import { migrateFile, openForMigration } from '../support/migrating.js'
import { insertRows } from '../support/rows.js'
import { schemaAfterMigrations } from '../support/schema.js'

const FIRST_PAGE = { limit: 100, offset: 0 }

const CONTENT = {
  id: 'c',
  workspace_id: 'w',
  from_address: 'me@sender.test',
  subject: 'Hello',
  track_opens: 0,
  track_clicks: 0,
  created_at: 1,
}

const noteMigration = (database: Database, name: string) =>
  database.write(({ db }) =>
    sql`insert into schema_migrations (name, timestamp) values (${name}, '2026-01-05')`.execute(db),
  )

t.test('the schema is the one in schema.snapshot.sql', async t => {
  const snapshot = readFileSync(join(process.cwd(), 'test/db/schema.snapshot.sql'), 'utf8')
  const schema = await schemaAfterMigrations(sqliteFile(t))
  t.equal(schema, snapshot, 'meant? then write it anew: node build/test/db/write-schema-snapshot.js')
})

t.test('migrations are numbered without gaps, in the order of the list', async t => {
  const numbers = Object.keys(MIGRATIONS).map(name => Number(/^(\d{4})-[a-z0-9-]+$/.exec(name)?.[1]))
  t.same(
    numbers,
    numbers.map((_, index) => index + 1),
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
  await migrateFile(file, '0008-list-indexes')
  const older = openForMigration(file)
  const ids = [uuidv7(2, Buffer.alloc(10)), uuidv7(3, Buffer.alloc(10))] as const
  const message = { workspace_id: 'w', content_id: 'c', status: 'sent', is_sandbox: 0, created_at: 1 }
  await insertRows(older, {
    message_contents: [CONTENT],
    messages: [
      { ...message, id: ids[0], recipient: 'Ann@one.test' },
      { ...message, id: ids[1], recipient: 'bob@two.test' },
    ],
  })
  await older.destroy()

  const database = await openSqlite({ file, clock: new FakeClock() })
  t.teardown(() => database[Symbol.asyncDispose]())
  const found = await listMessages(database.reader, 'w', { to: 'ann@one.test' }, FIRST_PAGE)
  t.match(found, { total: 1, items: [{ id: ids[0], recipient: 'Ann@one.test' }] })
})
