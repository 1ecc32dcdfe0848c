/** Migrations: a database is migrated to this program's schema, or refused with a message that says what to do. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import type { Database, Dialect } from '../../src/db/database.js'
import { inspectSchema, migrateToLatest, SchemaError, type SchemaState } from '../../src/db/migrate.js'
import { MIGRATION_NOTES } from '../../src/db/migration-notes.js'
import { BASELINE, MIGRATIONS } from '../../src/db/migrations.js'
import { SCHEMA_DIGESTS } from '../../src/db/migrations/schema-digests.js'
import { expectedSchema } from '../../src/db/schema.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { FakeDisk } from '../../src/world/fake-disk.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import {
  eachDatabase,
  migratedSqlite,
  onPostgres,
  sqliteDatabase,
  sqliteFile,
} from '../support/db/database.js'
import {
  MIGRATION_NAMES,
  migrateFile,
  NEXT_MIGRATION,
  openForMigration,
  upTo,
} from '../support/db/migrating.js'
import { FROZEN, makeSchema, SNAPSHOTS, sourceDigest } from '../support/db/schema.js'

const noteMigration = (database: Database, name: string) =>
  database.write(({ db }) =>
    sql`insert into schema_migrations (name, timestamp) values (${name}, '2026-01-05')`.execute(db),
  )

const REWRITE = 'if intended, rewrite it: node build/test/db/write-schema-snapshot.js'

for (const [dialect, title] of [
  ['sqlite', 'SQLite'],
  ['postgres', 'PostgreSQL'],
] as const)
  t.test(
    `the schema is the one in the snapshot, and has the digests that are compared (${title})`,
    async t => {
      const { text, digests } = await makeSchema(dialect)
      t.equal(text, readFileSync(SNAPSHOTS[dialect], 'utf8'), REWRITE)
      for (const [at, name] of MIGRATION_NAMES.entries()) {
        const expected = expectedSchema(MIGRATION_NAMES.slice(0, at + 1), dialect)
        t.same([...(expected ?? [])].sort(), [...(digests.get(name) ?? [])].sort(), `${name}: ${REWRITE}`)
      }
      t.same(Object.keys(SCHEMA_DIGESTS), MIGRATION_NAMES)
    },
  )

t.test('no migration was edited after its release', t => {
  const frozen = JSON.parse(readFileSync(FROZEN, 'utf8')) as Record<string, string>
  for (const name of new Set([...Object.keys(frozen), ...Object.keys(MIGRATIONS)]))
    t.equal(
      sourceDigest(name),
      frozen[name],
      `${name} exists in databases as it was: take the edit back, and write a new migration instead. ` +
        'A migration that is new itself is added to the list by node build/test/db/write-schema-snapshot.js',
    )
  t.end()
})

t.test('every migration says what it does, for the dry run and the log of an upgrade', async t => {
  t.same(Object.keys(MIGRATION_NOTES), Object.keys(MIGRATIONS), 'in src/db/migration-notes.ts')
  for (const [name, { does }] of Object.entries(MIGRATION_NOTES)) t.match(does, /^[A-Z].*\.$/, name)
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
        'the database was written by a newer Postroad (it has schema change 9999-time-travel)',
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
    new SchemaError('the database has an older schema', 'run `postroad migrate` first'),
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
        'the database was created before the first release (schema change 0001-initial) and cannot be migrated',
        'move it away to start with a new database, or export what you need with the version that created it',
      ),
    )
  t.equal(handle.prepare('select count(*) from sqlite_schema where type = ?').pluck().get('table'), 1)
  handle.close()
})

/** The state after statements, which are then taken back. */
async function stateAfter(database: Database, statements: readonly string[]): Promise<SchemaState> {
  const undo = new Error('undone')
  let state: SchemaState | undefined
  await database
    .write(async ({ db }) => {
      for (const statement of statements) await sql.raw(statement).execute(db)
      state = await inspectSchema(db, database.dialect)
      throw undo
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error
    })
  if (!state) throw new Error('the work did not run')
  return state
}

/** What a difference is called, and what makes it. */
type Difference = readonly [name: string, ...statements: string[]]

const REFUSED: readonly Difference[] = [
  ['table write_trials is missing', 'drop table write_trials'],
  ['table lists differs', 'alter table lists add column colour text'],
  ['table campaigns differs', 'alter table campaigns drop column ab_test'],
  ['index contacts_bounced is missing', 'drop index contacts_bounced'],
  [
    'index contacts_bounced differs',
    'drop index contacts_bounced',
    'create index contacts_bounced on contacts (seq)',
  ],
  [
    'unique index contacts_by_id is missing',
    'drop index contacts_by_id',
    'create index contacts_by_id on contacts (id)',
  ],
  ['unique index one_name was added', 'create unique index one_name on lists (name)'],
  ['view addresses was added', 'create view addresses as select email from contacts'],
]

const REFUSED_IN: Readonly<Record<Dialect, readonly Difference[]>> = {
  sqlite: [
    ['trigger contact_search_delete on contacts is missing', 'drop trigger contact_search_delete'],
    [
      'trigger spy on lists was added',
      'create trigger spy after delete on lists begin delete from list_members where list = old.seq; end',
    ],
  ],
  postgres: [
    ['table lists differs', 'alter table lists add constraint short check (length(name) < 10)'],
    ['table lists differs', 'alter table lists alter column name drop not null'],
    ['table write_trials differs', 'alter table write_trials set unlogged'],
    ['table lists differs', 'alter table lists enable row level security'],
    ['rule spy on lists was added', 'create rule spy as on delete to lists do instead nothing'],
    [
      'trigger spy on lists was added',
      'create trigger spy before update on lists for each row execute function suppress_redundant_updates_trigger()',
    ],
    [
      'function contact_trigrams(words text) differs',
      `create or replace function contact_trigrams(words text) returns text[] language sql immutable strict parallel safe
        return array[words]`,
    ],
  ],
}

eachDatabase(t, 'a schema that is not what its migrations make is refused by name', async (t, database) => {
  for (const [name, ...statements] of [...REFUSED, ...REFUSED_IN[database.dialect]]) {
    const { fault } = await stateAfter(database, statements)
    t.equal(
      fault?.what,
      `the database does not match its schema version ${MIGRATION_NAMES.at(-1) ?? ''}: ${name}`,
      statements.join('; '),
    )
  }
  t.match(await inspectSchema(database.reader, database.dialect), { fault: undefined, foreign: [] })
})

eachDatabase(t, 'many differences are counted, and what to do depends on them', async (t, database) => {
  const { fault } = await stateAfter(database, [
    'drop table write_trials',
    'drop table restore_holds',
    'drop table kept_answers',
    'create view addresses as select email from contacts',
  ])
  t.match(
    fault?.what,
    /: table kept_answers is missing, table restore_holds is missing, table write_trials is missing and 2 more$/,
  )
  t.match(fault?.fix, /changed by hand: undo the change, or restore a backup/)
  const added = await stateAfter(database, ['create view addresses as select email from contacts'])
  t.equal(added.fault?.fix, 'drop what was added')
})

eachDatabase(t, "an operator's own indexes and tables are reported, not refused", async (t, database) => {
  const state = await stateAfter(database, [
    'create index contacts_by_name on contacts (last_name)',
    'create table replicas (id integer primary key, name text not null)',
    'create unique index replicas_by_name on replicas (name)',
  ])
  t.match(state, {
    fault: undefined,
    foreign: ['index contacts_by_name', 'table replicas', 'unique index replicas_by_name'],
  })
})

onPostgres(
  t,
  'storage parameters and the order of columns are not part of the schema',
  async (t, database) => {
    const { fault } = await stateAfter(database, [
      'alter table messages set (fillfactor = 70)',
      "comment on table messages is 'mail'",
      'analyze messages',
      'alter table write_trials rename to old_trials',
      'create table write_trials (tried_at bigint not null, id integer, constraint trials_pk primary key (id))',
      'drop table old_trials',
      'alter table write_trials rename constraint trials_pk to write_trials_pkey',
    ])
    t.equal(fault, undefined)
  },
)

t.test('comments and white space of statements are not part of the schema (SQLite)', async t => {
  const file = sqliteFile(t)
  writeFileSync(file, await migratedSqlite())
  const handle = new BetterSqlite(file)
  handle.unsafeMode()
  handle.pragma('writable_schema = on')
  const { changes } = handle
    .prepare(
      `update sqlite_schema set sql = replace(replace(sql, 'text not null', 'TEXT  not/* ever */null -- it''s
        '), ' name ', ' "name" ') where type = 'table'`,
    )
    .run()
  handle.close()
  t.ok(changes > 50)
  await sqliteDatabase(t, file)
})

/** A database as builds before the first release made it, when the baseline had other tables. */
async function olderFile(t: Test): Promise<string> {
  const file = sqliteFile(t)
  await migrateFile(file, BASELINE)
  const handle = new BetterSqlite(file)
  handle.exec('drop table campaign_clicks; alter table campaigns drop column ab_test')
  // As it was before it could be shrunk: a start would rewrite it.
  handle.pragma('auto_vacuum = none')
  handle.exec('vacuum')
  handle.pragma('wal_checkpoint(truncate)')
  handle.close()
  return file
}

t.test('a database with an earlier baseline is refused, and left as it was', async t => {
  const file = await olderFile(t)
  const before = readFileSync(file)
  for (const mayMigrate of [true, false])
    await t.rejects(
      openSqlite({
        file,
        clock: new FakeClock(),
        mayMigrate,
        watch: { disk: new FakeDisk(), log: new FakeLog(), reserve: 0 },
      }),
      {
        name: 'SchemaError',
        message:
          /^the database does not match its schema version 0001-baseline: table campaign_clicks is missing, .*; it was changed by hand, or created by a build before the first release/,
      },
    )
  t.ok(readFileSync(file).equals(before))
  t.notOk(existsSync(`${file}-wal`))
})

t.test('a database that another process migrates between two reads is not refused', async t => {
  const file = sqliteFile(t)
  writeFileSync(file, await migratedSqlite())
  const other = new BetterSqlite(file)
  t.teardown(() => other.close())
  let isMigrated = false
  const db = openForMigration(file, statement => {
    if (isMigrated || !statement.includes('tbl_name')) return
    isMigrated = true
    other.exec(`alter table lists add column language text;
      insert into schema_migrations values ('${NEXT_MIGRATION}', '2026-01-05')`)
  })
  t.teardown(() => db.destroy())
  const { applied, fault } = await inspectSchema(db, 'sqlite', upTo(NEXT_MIGRATION))
  t.ok(isMigrated)
  t.equal(fault, undefined)
  t.same(applied, [...MIGRATION_NAMES, NEXT_MIGRATION])
})
