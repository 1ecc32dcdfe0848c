/** Threads that write by themselves: turn by turn with the server, and what they do not finish is nobody's trouble. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import type { Lending, Queries } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { runWriting } from '../../src/db/threads/writing-thread.js'
import { systemDisk } from '../../src/world/disk.js'
import { FakeDisk } from '../../src/world/fake-disk.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { spawnThread } from '../../src/world/threads.js'
import { systemClock } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase, sqliteFile } from '../support/db/database.js'

const PROGRAM = pathToFileURL(join(process.cwd(), 'build/test/support/db/write-by-tasks.js'))

/** A server's database, and a thread that does these tasks. */
async function open(
  t: Test,
  tasks: readonly (readonly [text: string, what: 'note' | 'time' | 'wrong' | 'die'])[],
) {
  const file = sqliteFile(t)
  // For its tables only.
  await sqliteDatabase(t, file)
  const log = new FakeLog()
  let commits = 0
  const database = await openSqlite({
    ...{ file, clock: systemClock, onCommitted: () => void (commits += 1) },
    checkpoints: { spawn: spawnThread, log },
    watch: { disk: systemDisk, log, reserve: 0 },
  })
  t.teardown(() => database[Symbol.asyncDispose]())
  await database.write(async ({ db }) => {
    await sql`create table tasks (text, what)`.execute(db)
    await sql`create table notes (text)`.execute(db)
    await sql`create table outcomes (text)`.execute(db)
    for (const [text, what] of tasks) await sql`insert into tasks values (${text}, ${what})`.execute(db)
  })
  const { lending } = database
  if (!lending) throw new Error('nothing is lent')
  const clock = new FakeClock()
  const run = (stopping: AbortSignal = new AbortController().signal, lent: Lending = lending) =>
    runWriting({ spawn: spawnThread, log, lending: lent, clock, onWritten: () => {} }, PROGRAM, stopping)
  const texts = async (table: 'notes' | 'outcomes') => {
    const { rows } = await sql<{ text: string }>`select text from ${sql.table(table)} order by rowid`.execute(
      database.reader,
    )
    return rows.map(({ text }) => text)
  }
  return { file, database, lending, clock, run, texts, commits: () => commits }
}

/** A server's database on a disk of which 1,000 octets are reserved. */
async function openOn(t: Test, disk: FakeDisk) {
  const file = sqliteFile(t)
  // For its tables only.
  await sqliteDatabase(t, file)
  const [clock, log] = [new FakeClock(), new FakeLog()]
  const database = await openSqlite({
    ...{ file, clock },
    checkpoints: { spawn: spawnThread, log },
    watch: { disk, log, reserve: 1_000 },
  })
  t.teardown(() => database[Symbol.asyncDispose]())
  const { lending } = database
  if (!lending) throw new Error('nothing is lent')
  return { lending, disk, clock }
}

const note = (db: Queries, text: string) => sql`insert into notes values (${text})`.execute(db)

t.test('a thread and the server write in turns, and everything is there', async t => {
  const names = Array.from({ length: 30 }, (_, at) => `thread ${at}`)
  const { database, run, texts } = await open(
    t,
    names.map(name => [name, 'note']),
  )
  const over = new AbortController()
  const running = run().finally(() => over.abort())
  let written = 0
  while (!over.signal.aborted) {
    await database.write(({ db }) => note(db, `server ${written}`))
    written += 1
  }
  await running
  const all = await texts('notes')
  t.same(
    all.filter(text => text.startsWith('thread')),
    names,
  )
  t.same(
    all.filter(text => text.startsWith('server')),
    Array.from({ length: written }, (_, at) => `server ${at}`),
  )
  t.ok(all.indexOf('server 0') < all.indexOf('thread 29'), 'neither waited for all of the other')
})

t.test('a thread keeps its turn for as long as nobody else wants to write', async t => {
  const names = Array.from({ length: 30 }, (_, at) => `thread ${at}`)
  const { lending, run, texts, commits } = await open(
    t,
    names.map(name => [name, 'note']),
  )
  const before = commits()
  let turns = 0
  const counting: Lending = {
    ...lending,
    lend: async use => {
      turns += 1
      await lending.lend(use)
    },
  }
  await run(undefined, counting)
  t.same(await texts('notes'), names)
  t.equal(turns, 1)
  t.equal(commits() - before, 2 * names.length, 'each transaction counts as one')
})

t.test('it is the same time in a thread as in the server', async t => {
  const { clock, run, texts } = await open(t, [['today is', 'time']])
  await run()
  t.same(await texts('notes'), [`today is ${new Date(clock.now()).toISOString().slice(0, 10)}`])
})

t.test('what throws in a thread’s transaction is undone alone', async t => {
  const { run, texts } = await open(t, [
    ['first', 'note'],
    ['second', 'wrong'],
    ['third', 'note'],
  ])
  await run()
  t.same(await texts('notes'), ['first', 'third'])
  t.same(await texts('outcomes'), ['first: written', 'second: thought better of it', 'third: written'])
})

t.test(
  'a thread that ends in the middle of its transaction leaves nothing of it, and the turn to others',
  async t => {
    const { database, run, texts } = await open(t, [
      ['first', 'note'],
      ['second', 'die'],
    ])
    await t.rejects(run(), { message: 'a thread that writes ended: exit code 3' })
    await database.write(({ db }) => note(db, 'by the server'))
    t.same(await texts('notes'), ['first', 'by the server'])
  },
)

t.test('a thread that is told to stop ends between two transactions', async t => {
  const { lending, run, texts } = await open(
    t,
    Array.from({ length: 50 }, (_, at) => [`thread ${at}`, 'note']),
  )
  const stop = new AbortController()
  await run(stop.signal, {
    ...lending,
    lend: async use => {
      stop.abort()
      await lending.lend(use)
    },
  })
  const done = await texts('notes')
  t.ok(done.length > 0 && done.length < 50, `${done.length} of 50`)
  t.equal((await texts('outcomes')).length, done.length)
})

t.test('what a thread commits into files that were deleted meanwhile counts for nothing', async t => {
  const { file, lending } = await open(t, [])
  await t.rejects(
    lending.lend(async () => {
      rmSync(file)
    }),
    { code: 'unavailable', message: /lost its database/ },
  )
})

t.test('where the disk has no room for new mail, no thread writes either', async t => {
  const { lending, disk, clock } = await openOn(t, new FakeDisk())
  disk.free = 999
  await clock.advance(1_000)
  await t.rejects(
    lending.lend(() => Promise.reject(new Error('it was asked'))),
    { code: 'unavailable', message: /disk of the mail server is nearly full/, retryAfterMs: 60_000 },
  )
  disk.free = 2_000
  await clock.advance(1_000)
  let asked = 0
  await lending.lend(async () => {
    asked += 1
  })
  t.equal(asked, 1)
})

t.test('a thread whose turn is refused hears why', async t => {
  const { lending, run, texts } = await open(t, [['first', 'note']])
  let turns = 0
  const refusing: Lending = {
    ...lending,
    lend: async use => {
      turns += 1
      if (turns === 1) throw new Error('not now')
      await lending.lend(use)
    },
  }
  await run(undefined, refusing)
  t.same(await texts('outcomes'), ['first: not now'])
  t.same(await texts('notes'), [])
})
