/** Group commit: works that wait at the same time share a transaction, and each gets only its own result. */
import t from 'tap'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import type { Queries } from '../../src/db/database.js'
import { GroupCommit } from '../../src/db/sqlite/group-commit.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase, sqliteFile } from '../support/db/database.js'

const insertNote = (db: Queries, text: string) => sql`insert into notes (text) values (${text})`.execute(db)

async function notes(db: Queries): Promise<string[]> {
  const { rows } = await sql<{ text: string }>`select text from notes order by text`.execute(db)
  return rows.map(row => row.text)
}

/** Group commit over a bare SQLite file, and a second connection to look at it from outside. */
async function groupCommit(t: Parameters<typeof sqliteFile>[0]) {
  const file = sqliteFile(t)
  const handle = new BetterSqlite(file)
  const writer = new Kysely<Tables>({ dialect: sqliteDialect(handle).dialect })
  t.teardown(() => writer.destroy())
  await sql`create table notes (text text primary key)`.execute(writer)
  const other = new BetterSqlite(file, { timeout: 0 })
  t.teardown(() => {
    other.close()
  })
  return { groups: new GroupCommit(writer, new FakeClock()), handle, other, writer }
}

t.test('works that wait at the same time share one transaction', async t => {
  const { groups, other, writer } = await groupCommit(t)
  const versions: unknown[] = []
  await Promise.all(
    ['a', 'b', 'c'].map(async text => {
      await groups.write(({ db }) => insertNote(db, text))
      versions.push(other.pragma('data_version', { simple: true }))
    }),
  )
  t.equal(new Set(versions).size, 1, 'from outside it was one change')
  t.same(await notes(writer), ['a', 'b', 'c'])
})

t.test('works that follow one another have a transaction each', async t => {
  const { groups, other } = await groupCommit(t)
  const version = () => other.pragma('data_version', { simple: true })
  await groups.write(({ db }) => insertNote(db, 'a'))
  const first = version()
  await groups.write(({ db }) => insertNote(db, 'b'))
  t.not(version(), first)
})

t.test('pieces of long work share no commit with others, and let them go first', async t => {
  const { groups, other, writer } = await groupCommit(t)
  const order: string[] = []
  const versions = new Map<string, unknown>()
  const write = async (text: string, isLong: boolean) => {
    await groups.write(({ db }) => insertNote(db, text), { isLong })
    order.push(text)
    versions.set(text, other.pragma('data_version', { simple: true }))
  }
  await Promise.all([write('piece', true), write('one', false), write('another', false)])
  t.same(order, ['one', 'another', 'piece'])
  t.equal(versions.get('one'), versions.get('another'))
  t.not(versions.get('piece'), versions.get('one'))
  t.equal((await notes(writer)).length, 3)
})

t.test('long work progresses however many others arrive', async t => {
  const { groups } = await groupCommit(t)
  let isDone = false
  const piece = groups
    .write(({ db }) => insertNote(db, 'piece'), { isLong: true })
    .then(() => (isDone = true))
  let others = 0
  const client = async (name: string) => {
    for (let at = 0; !isDone && at < 1_000; at += 1) {
      await groups.write(({ db }) => insertNote(db, `${name} ${at}`))
      others += 1
    }
  }
  await Promise.all([client('a'), client('b'), piece])
  t.ok(others < 100, `it waited for ${others}`)
})

t.test('long work that throws is undone alone', async t => {
  const { groups, writer } = await groupCommit(t)
  const results = await Promise.allSettled([
    groups.write(({ db }) => insertNote(db, 'kept'), { isLong: true }),
    groups.write(
      async ({ db }) => {
        await insertNote(db, 'undone')
        throw new Error('it does not work')
      },
      { isLong: true },
    ),
  ])
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
  t.same(await notes(writer), ['kept'])
})

eachDatabase(t, 'a work that throws is undone alone and the others are kept', async (t, database) => {
  await database.write(({ db }) => sql`create table notes (text varchar(20) primary key)`.execute(db))
  const results = await Promise.allSettled([
    database.write(({ db }) => insertNote(db, 'first')),
    database.write(async ({ db }) => {
      await insertNote(db, 'taken back')
      throw new Error('changed my mind')
    }),
    database.write(async ({ db }) => {
      await insertNote(db, 'taken back as well')
      await insertNote(db, 'first')
    }),
    database.write(({ db }) => insertNote(db, 'last')),
  ])
  t.same(
    results.map(result => result.status),
    ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  t.match(results[1], { reason: { message: 'changed my mind' } })
  t.same(await notes(database.reader), ['first', 'last'])
})

eachDatabase(t, 'a lone work that throws is rolled back and delays no later work', async (t, database) => {
  await database.write(({ db }) => sql`create table notes (text varchar(20) primary key)`.execute(db))
  await database.write(({ db }) => insertNote(db, 'first'))
  await t.rejects(
    database.write(async ({ db }) => {
      await insertNote(db, 'taken back')
      throw new Error('changed my mind')
    }),
    { message: 'changed my mind' },
  )
  await t.rejects(
    database.write(async ({ db }) => {
      await insertNote(db, 'taken back as well')
      await insertNote(db, 'first')
    }),
    { message: /unique/i },
  )
  await database.write(({ db }) => insertNote(db, 'last'))
  t.same(await notes(database.reader), ['first', 'last'])
})

t.test(
  'work that arrives while a lone work runs is in the next commit and is not rolled back with it',
  async t => {
    const { groups, writer } = await groupCommit(t)
    let second: Promise<unknown> | undefined
    await t.rejects(
      groups.write(async ({ db }) => {
        second = groups.write(({ db: next }) => insertNote(next, 'second'))
        await insertNote(db, 'taken back')
        throw new Error('changed my mind')
      }),
      { message: 'changed my mind' },
    )
    await second
    t.same(await notes(writer), ['second'])
  },
)

eachDatabase(t, 'a work resolves with its own result', async (t, database) => {
  t.same(await Promise.all([1, 2, 3].map(n => database.write(async () => n * 10))), [10, 20, 30])
})

t.test('a work resolves only after another connection can see what it wrote', async t => {
  const { groups, other } = await groupCommit(t)
  const seenByOthers = () => other.prepare('select count(*) from notes').pluck().get()
  let seenInside: unknown
  await groups.write(async ({ db }) => {
    await insertNote(db, 'a')
    seenInside = seenByOthers()
  })
  t.equal(seenInside, 0)
  t.equal(seenByOthers(), 1)
})

t.test(
  'when the commit fails every work of the group rejects with that error and nothing is kept',
  async t => {
    const { groups, handle, writer } = await groupCommit(t)
    handle.pragma('foreign_keys = ON')
    await sql`create table parents (id integer primary key)`.execute(writer)
    await sql`create table children (parent integer references parents (id) deferrable initially deferred)`.execute(
      writer,
    )
    const called: string[] = []
    const results = await Promise.allSettled([
      groups.write(async tx => {
        tx.onCommit(() => called.push('innocent'))
        await insertNote(tx.db, 'innocent')
      }),
      groups.write(({ db }) => sql`insert into children values (7)`.execute(db)),
    ])
    for (const result of results)
      t.match(result, { status: 'rejected', reason: { message: /FOREIGN KEY constraint failed/ } })
    t.same(called, [], 'no commit is reported')
    t.same(await notes(writer), [])
    await groups.write(({ db }) => insertNote(db, 'the next group works'))
    t.same(await notes(writer), ['the next group works'])
  },
)

t.test('if the transaction cannot begin, waiting works reject and later ones succeed', async t => {
  const { groups, handle, other, writer } = await groupCommit(t)
  handle.pragma('busy_timeout = 0')
  other.exec('begin immediate')
  const results = await Promise.allSettled([
    groups.write(({ db }) => insertNote(db, 'a')),
    groups.write(({ db }) => insertNote(db, 'b')),
  ])
  for (const result of results)
    t.match(result, { status: 'rejected', reason: { message: 'database is locked' } })
  other.exec('rollback')
  await groups.write(({ db }) => insertNote(db, 'c'))
  t.same(await notes(writer), ['c'])
})

eachDatabase(
  t,
  'onCommit calls back after the commit, and never for a work that threw',
  async (t, database) => {
    const called: string[] = []
    await Promise.allSettled([
      database.write(async tx => {
        tx.onCommit(() => called.push('kept'))
        t.same(called, [], 'not before the commit')
      }),
      database.write(async tx => {
        tx.onCommit(() => called.push('undone'))
        throw new Error('no')
      }),
    ])
    t.same(called, ['kept'])
  },
)

t.test('what is written from an onCommit callback gets its own turn', async t => {
  const { groups, writer } = await groupCommit(t)
  let second: Promise<unknown> | undefined
  await groups.write(async tx => {
    tx.onCommit(() => {
      second = groups.write(({ db }) => insertNote(db, 'later'))
    })
  })
  await second
  t.same(await notes(writer), ['later'])
})

t.test('idle resolves when nothing waits or runs', async t => {
  const { groups, writer } = await groupCommit(t)
  void groups.write(({ db }) => insertNote(db, 'a'))
  void groups.write(({ db }) => insertNote(db, 'b'))
  await groups.idle()
  t.same(await notes(writer), ['a', 'b'])
})

t.test('if the database rolls back on its own, callers get the original error', async t => {
  const { groups } = await groupCommit(t)
  const full = groups.write(async ({ db }) => {
    await sql`rollback`.execute(db)
    throw new Error('database or disk is full')
  })
  const another = groups.write(({ db }) => sql`select 1`.execute(db))
  await t.rejects(full, { message: 'database or disk is full' })
  await t.resolves(another, 'who had not run yet is not drawn in')
  t.equal(await groups.write(async () => 'works again'), 'works again')
})
