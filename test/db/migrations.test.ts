/** Migrations: a database is migrated to this program's schema, or refused with a message that says what to do. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import type { Database } from '../../src/db/database.js'
import { migrateToLatest, SchemaError } from '../../src/db/migrate.js'
import { MIGRATIONS } from '../../src/db/migrations.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase, sqliteDatabase, sqliteFile } from '../support/db/database.js'
import { emptyPostgres } from '../support/db/postgres.js'
import { postgresSchema, SNAPSHOTS, sqliteSchema } from '../support/db/schema.js'

const noteMigration = (database: Database, name: string) =>
  database.write(({ db }) =>
    sql`insert into schema_migrations (name, timestamp) values (${name}, '2026-01-05')`.execute(db),
  )

const REWRITE = 'if intended, rewrite it: node build/test/db/write-schema-snapshot.js'

t.test('the schema is the one in the snapshot (SQLite)', async t => {
  t.equal(await sqliteSchema(sqliteFile(t)), readFileSync(SNAPSHOTS.sqlite, 'utf8'), REWRITE)
})

t.test('the schema is the one in the snapshot (PostgreSQL)', async t => {
  const schema = await postgresSchema(await emptyPostgres())
  t.equal(schema, readFileSync(SNAPSHOTS.postgres, 'utf8'), REWRITE)
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

t.test('an older schema is refused without permission to migrate, and left unchanged', async t => {
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

t.test('a database from before the first release is refused, and left as it was', async t => {
  const file = sqliteFile(t)
  const handle = new BetterSqlite(file)
  handle.exec(`create table schema_migrations (name text primary key, timestamp text not null);
    insert into schema_migrations values ('0001-initial', '2026-01-05'), ('0002-relayed-mail', '2026-01-05')`)
  for (const mayMigrate of [true, false])
    await t.rejects(
      openSqlite({ file, clock: new FakeClock(), mayMigrate }),
      new SchemaError(
        'the database was created before the first release (schema change 0001-initial) and cannot be migrated; ' +
          'move the file away to start with a new database, or export what you need with the version that created it',
      ),
    )
  t.equal(handle.prepare('select count(*) from sqlite_schema where type = ?').pluck().get('table'), 1)
  handle.close()
})
