/** The embedded database as it is really opened: durability, isolation, and a second process beside this one. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import { isServing, LockedError, takeServeLock } from '../../src/db/sqlite/serve-lock.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import { nextTurn, pauseFor } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase, sqliteFile } from '../support/db/database.js'

t.test('a commit is on disk before it is acknowledged: WAL with synchronous=FULL', async t => {
  const database = await sqliteDatabase(t)
  const pragmas = await database.write(async ({ db }) => {
    const read = async (name: string) =>
      Object.values((await sql.raw(`pragma ${name}`).execute(db)).rows[0] ?? {})
    return {
      journal: await read('journal_mode'),
      synchronous: await read('synchronous'),
      keys: await read('foreign_keys'),
    }
  })
  t.same(pragmas, { journal: ['wal'], synchronous: [2], keys: [1] })
})

t.test('the reader cannot write', async t => {
  const database = await sqliteDatabase(t)
  await t.rejects(sql`create table x (y)`.execute(database.reader), /readonly database/)
})

t.test('readers see the last commit while a transaction is open', async t => {
  const database = await sqliteDatabase(t)
  await database.write(({ db }) => sql`create table notes (text)`.execute(db))
  await database.write(async ({ db }) => {
    await sql`insert into notes values ('a')`.execute(db)
    const { rows } = await sql`select * from notes`.execute(database.reader)
    t.same(rows, [])
  })
  const { rows } = await sql`select * from notes`.execute(database.reader)
  t.same(rows, [{ text: 'a' }])
})

t.test(
  'a transaction that reads first and writes later outlasts another connection that wants to write',
  async t => {
    const file = sqliteFile(t)
    const database = await sqliteDatabase(t, file)
    await database.write(({ db }) => sql`create table counter (value integer)`.execute(db))
    await database.write(({ db }) => sql`insert into counter values (1)`.execute(db))
    const other = new BetterSqlite(file, { timeout: 0 })
    t.teardown(() => {
      other.close()
    })
    await database.write(async ({ db }) => {
      await sql`select value from counter`.execute(db)
      t.throws(
        () => other.exec('update counter set value = 100'),
        /database is locked/,
        'the other one waits',
      )
      await sql`update counter set value = value + 1`.execute(db)
    })
    other.exec('update counter set value = value * 10')
    const { rows } = await sql`select value from counter`.execute(database.reader)
    t.same(rows, [{ value: 20 }])
  },
)

t.test('while another process writes, the event loop runs and reads are answered', async t => {
  const file = sqliteFile(t)
  const database = await sqliteDatabase(t, file)
  const other = new BetterSqlite(file)
  t.teardown(() => void other.close())
  other.exec('begin immediate')
  const written = database.write(({ db }) => sql`create table notes (text)`.execute(db))
  // Were it waited for inside of a statement, this would come to nothing before five seconds are over, and the write would fail.
  for (let turns = 0; turns < 20; turns += 1) {
    await pauseFor(1)
    await sql`select 1`.execute(database.reader)
  }
  other.exec('commit')
  await written
  t.same((await sql`select * from notes`.execute(database.reader)).rows, [])
})

t.test('a lock that is not given up is waited for 5 s, then the write is refused as unavailable', async t => {
  const file = sqliteFile(t)
  const clock = new FakeClock()
  await using database = await openSqlite({ file, clock })
  const other = new BetterSqlite(file)
  t.teardown(() => void other.close())
  other.exec('begin immediate')
  const write = () => database.write(({ db }) => sql`create table notes (text)`.execute(db))
  const refused = t.rejects(Promise.all([write(), write()]), {
    code: 'unavailable',
    message: /locked by another process/,
    retryAfterMs: Number,
  })
  await pauseFor(5)
  await clock.advance(5_000)
  await refused
  other.exec('rollback')
  await write()
})

t.test('commits of another process count for every topic, own ones for what they report', async t => {
  const file = sqliteFile(t)
  const database = await sqliteDatabase(t, file)
  await database.write(({ db }) => sql`create table notes (text)`.execute(db))
  const { changes } = database
  const versions = () => [changes.version('queue'), changes.version('keys')]
  const [queue = 0, keys = 0] = versions()
  await database.write(({ db }) => sql`insert into notes values ('unreported')`.execute(db))
  t.same(versions(), [queue, keys])
  await database.write(async tx => tx.changed('keys'))
  t.same(versions(), [queue, keys + 1])
  await t.rejects(
    database.write(async tx => {
      tx.changed('keys')
      throw new Error('rolled back')
    }),
  )
  t.same(versions(), [queue, keys + 1])
  const other = new BetterSqlite(file)
  other.exec("insert into notes values ('from elsewhere')")
  other.close()
  await nextTurn()
  const [laterQueue = 0, laterKeys = 0] = versions()
  t.ok(laterQueue > queue && laterKeys > keys + 1)
})

t.test('closing waits for the writes that are under way', async t => {
  const file = sqliteFile(t)
  const database = await openSqlite({ file, clock: new FakeClock() })
  const written = database.write(({ db }) => sql`create table notes (text)`.execute(db))
  await database[Symbol.asyncDispose]()
  await written
  const handle = new BetterSqlite(file, { readonly: true })
  t.same(handle.prepare("select name from sqlite_schema where name = 'notes'").pluck().all(), ['notes'])
  handle.close()
})

t.test(
  'more distinct statements than are kept prepared all give their own answer, old ones again',
  async t => {
    const db = new Kysely<object>({ dialect: sqliteDialect(new BetterSqlite(':memory:')).dialect })
    t.teardown(() => db.destroy())
    const ask = async (n: number) => (await sql.raw(`select ${n} as n`).execute(db)).rows
    for (const round of [1, 2])
      for (let n = 0; n < 700; n += 1)
        if (JSON.stringify(await ask(n)) !== `[{"n":${n}}]`) t.fail(`round ${round}, statement ${n}`)
    t.same(await ask(699), [{ n: 699 }])
  },
)

t.test('a kept statement follows a change of the schema', async t => {
  const db = new Kysely<object>({ dialect: sqliteDialect(new BetterSqlite(':memory:')).dialect })
  t.teardown(() => db.destroy())
  await sql`create table notes (text)`.execute(db)
  await sql`insert into notes values ('a')`.execute(db)
  t.same((await sql`select * from notes`.execute(db)).rows, [{ text: 'a' }])
  await sql`alter table notes add column place text default 'here'`.execute(db)
  t.same((await sql`select * from notes`.execute(db)).rows, [{ text: 'a', place: 'here' }])
})

t.test('rows can be streamed while the same statement runs elsewhere', async t => {
  const db = new Kysely<{ notes: { n: number } }>({
    dialect: sqliteDialect(new BetterSqlite(':memory:')).dialect,
  })
  t.teardown(() => db.destroy())
  await sql`create table notes (n integer)`.execute(db)
  await db
    .insertInto('notes')
    .values([{ n: 1 }, { n: 2 }, { n: 3 }])
    .execute()
  const seen: number[] = []
  for await (const { n } of db.selectFrom('notes').select('n').orderBy('n').stream()) seen.push(n)
  t.same(seen, [1, 2, 3])
})

t.test('a second server on the same folder is refused, naming the first', async t => {
  const folder = t.testdir()
  const lock = takeServeLock(folder)
  t.equal(isServing(folder), true)
  t.throws(
    () => takeServeLock(folder),
    new LockedError(
      `another postroad serves ${folder} (process ${process.pid}); stop it first, or use another data_dir`,
    ),
  )
  lock[Symbol.dispose]()
  t.equal(isServing(folder), false)
})

t.test('the lock of a server that was killed is free', async t => {
  const folder = t.testdir()
  const holder = join(folder, 'holder.mjs')
  const lockModule = pathToFileURL('build/src/db/sqlite/serve-lock.js').href
  writeFileSync(
    holder,
    `const { takeServeLock } = await import(${JSON.stringify(lockModule)})
     globalThis.lock = takeServeLock(${JSON.stringify(folder)})
     process.send('locked')
     process.on('message', () => undefined)`,
  )
  const child: ChildProcess = fork(holder)
  await once(child, 'message')
  t.equal(isServing(folder), true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(isServing(folder), false)
})
