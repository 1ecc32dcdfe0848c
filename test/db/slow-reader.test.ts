/** Long reads: in a separate thread, bounded, and never older than acknowledged writes. */
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import type { Queries } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { MAX_WAITING, RUNNING_LIMIT_MS } from '../../src/db/slow-read-limits.js'
import { snapshot } from '../../src/db/snapshot.js'
import { WAITING_LIMIT_MS } from '../../src/db/sqlite/slow-reader.js'
import { nextTurn } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { spawnThread, type SpawnThread, type ThreadOptions } from '../../src/world/threads.js'
import { sqliteDatabase, sqliteFile } from '../support/db/database.js'

async function open(t: Test, spawn: SpawnThread = spawnThread) {
  const file = sqliteFile(t)
  // For its tables only.
  await sqliteDatabase(t, file)
  const [clock, log] = [new FakeClock(), new FakeLog()]
  const database = await openSqlite({ file, clock, slowReads: { spawn, log, clock } })
  t.teardown(() => database[Symbol.asyncDispose]())
  return { database, slow: database.slowReader, clock, log }
}

const countTo = (db: Queries, most: number) =>
  sql<{
    n: number
  }>`with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${most})
    select max(n) as n from counted`.execute(db)

/** A thread that answers when the test says so. */
function scriptedThreads() {
  const threads: { posted: unknown[]; answer: ThreadOptions['onMessage']; end: ThreadOptions['onEnd'] }[] = []
  const spawn: SpawnThread = (_entry, { onMessage, onEnd }) => {
    const posted: unknown[] = []
    threads.push({ posted, answer: onMessage, end: onEnd })
    return { post: message => void posted.push(message), terminate: () => Promise.resolve() }
  }
  return { threads, spawn }
}

t.test('a long read holds up nobody, and sees every commit that was acknowledged', async t => {
  const { database, slow } = await open(t)
  await database.write(({ db }) => sql`create table notes (text, octets)`.execute(db))
  const long = countTo(slow, 3_000_000)
  let turns = 0
  const counting = long.finally(() => (turns = -turns))
  while (turns >= 0 && turns < 1_000_000) {
    turns += 1
    await nextTurn()
  }
  t.same((await counting).rows, [{ n: 3_000_000 }])
  t.ok(turns < -10, 'the event loop was not blocked')
  for (let n = 1; n <= 20; n += 1) {
    await database.write(({ db }) => sql`insert into notes values ('a', ${Buffer.from('b')})`.execute(db))
    t.same((await sql`select count(*) as n from notes`.execute(slow)).rows, [{ n }])
  }
  t.match((await sql`select * from notes limit 1`.execute(slow)).rows, [{ text: 'a' }])
})

t.test('a long read cannot write, fails with its own error, and gives a bounded number of rows', async t => {
  const { slow } = await open(t)
  await t.rejects(sql`create table x (y)`.execute(slow))
  await t.rejects(sql`select * from nowhere`.execute(slow), /no such table/)
  const many = sql`with recursive c(n) as (select 1 union all select n + 1 from c where n < 30000) select n from c`
  await t.rejects(many.execute(slow), /more than 20000 rows/)
  t.same((await countTo(slow, 3)).rows, [{ n: 3 }], 'and the next one is answered')
})

t.test('the statements of a snapshot see one moment, whatever is committed meanwhile', async t => {
  const { database, slow } = await open(t)
  await database.write(({ db }) => sql`create table notes (text)`.execute(db))
  const count = async (db: Queries) =>
    (await sql<{ n: number }>`select count(*) as n from notes`.execute(db)).rows[0]?.n
  for (const reader of [slow, database.exportReader, database.reader]) {
    await database.write(({ db }) => sql`delete from notes`.execute(db))
    await snapshot(reader, async db => {
      t.equal(await count(db), 0)
      await database.write(({ db }) => sql`insert into notes values ('a')`.execute(db))
      t.equal(await count(db), 0)
      t.equal(await count(reader), 1, 'others see the commit')
      t.same(await Promise.all([count(db), snapshot(db, count)]), [0, 0])
    })
    t.equal(await count(reader), 1)
    await t.rejects(snapshot(reader, db => sql`insert into notes values ('b')`.execute(db)))
    t.equal(await snapshot(reader, count), 1, 'and the next one begins afterwards')
  }
})

t.test('of two snapshots the second waits, and a thread remains for other reads', async t => {
  const { threads, spawn } = scriptedThreads()
  const { slow } = await open(t, spawn)
  const none = { columns: [], rows: [] }
  const first = snapshot(slow, db => countTo(db, 1))
  const second = snapshot(slow, db => countTo(db, 2))
  const read = countTo(slow, 3)
  const sqlIn = (thread: number) =>
    (threads[thread]?.posted ?? []).map(asked => (asked as { sql: string }).sql.slice(0, 6))
  await nextTurn()
  threads[1]?.answer({ columns: ['n'], rows: [[3]] })
  t.same((await read).rows, [{ n: 3 }])
  threads[0]?.answer(none)
  await nextTurn()
  threads[0]?.answer({ columns: ['n'], rows: [[1]] })
  await nextTurn()
  t.same([sqlIn(0), sqlIn(1)], [['begin', 'with r', 'commit'], ['with r']])
  threads[0]?.answer(none)
  t.same((await first).rows, [{ n: 1 }])
  await nextTurn()
  for (const answer of [none, { columns: ['n'], rows: [[2]] }, none]) {
    threads[0]?.answer(answer)
    await nextTurn()
  }
  t.same((await second).rows, [{ n: 2 }])
})

t.test('a snapshot fails once its thread is gone, since another one would see another moment', async t => {
  const { threads, spawn } = scriptedThreads()
  const { slow, clock } = await open(t, spawn)
  const reading = snapshot(slow, async db => {
    await countTo(db, 1).catch(() => {})
    return countTo(db, 2)
  })
  const refused = t.rejects(reading, { code: 'unavailable' })
  await nextTurn()
  threads[0]?.answer({ columns: [], rows: [] })
  await nextTurn()
  await clock.advance(RUNNING_LIMIT_MS)
  await refused
  const next = countTo(slow, 3)
  await nextTurn()
  threads[1]?.answer({ columns: ['n'], rows: [[3]] })
  t.same((await next).rows, [{ n: 3 }])
})

t.test('past the bound of those who wait a read is refused, and so is one that waited too long', async t => {
  const { threads, spawn } = scriptedThreads()
  const { slow, clock } = await open(t, spawn)
  const asked = Array.from({ length: MAX_WAITING / 2 + 2 }, () => countTo(slow, 1))
  await nextTurn()
  await t.rejects(countTo(slow, 1), {
    code: 'unavailable',
    message: /too many long-running queries/,
    retryAfterMs: 5_000,
  })
  threads[0]?.answer({ columns: ['n'], rows: [[1]] })
  t.same((await asked[0])?.rows, [{ n: 1 }])
  t.equal(threads[0]?.posted.length, 2, 'one at a time to each thread')
  const rest = Promise.allSettled(asked.slice(1))
  for (let ms = 0; ms <= WAITING_LIMIT_MS; ms += RUNNING_LIMIT_MS) await clock.advance(RUNNING_LIMIT_MS)
  for (const one of await rest) t.match(one, { status: 'rejected', reason: { code: 'unavailable' } })
})

t.test('a read that takes too long is rejected and abandoned; another thread continues', async t => {
  const { threads, spawn } = scriptedThreads()
  const { slow, clock, log } = await open(t, spawn)
  const [first, second, third] = [countTo(slow, 1), countTo(slow, 2), countTo(slow, 3)]
  const refused = t.rejects(first, { code: 'unavailable', message: /took longer than 5 s and was stopped/ })
  await nextTurn()
  threads[1]?.answer({ columns: ['n'], rows: [[2]] })
  threads[1]?.answer({ columns: ['n'], rows: [[3]] })
  t.same((await second).rows, [{ n: 2 }])
  t.same((await third).rows, [{ n: 3 }], 'another one continues meanwhile')
  await clock.advance(RUNNING_LIMIT_MS)
  await refused
  const fourth = countTo(slow, 4)
  await nextTurn()
  threads[0]?.answer({ columns: ['n'], rows: [['too late']] })
  threads[2]?.answer({ columns: ['n'], rows: [[4]] })
  t.same((await fourth).rows, [{ n: 4 }])
  t.match(log.lines, [{ level: 'warn', event: 'slow read aborted' }])
})

t.test('a thread that ends fails what it was asked, and the next read has a new one', async t => {
  const { threads, spawn } = scriptedThreads()
  const { slow, log } = await open(t, spawn)
  const lost = t.rejects(countTo(slow, 1), /slow reader thread exited: heap/)
  await nextTurn()
  threads[0]?.end({ exitCode: 1, fault: new Error('heap') })
  await lost
  const next = countTo(slow, 1)
  await nextTurn()
  threads[1]?.answer({ columns: ['n'], rows: [[1]] })
  t.same((await next).rows, [{ n: 1 }])
  t.match(log.lines, [{ level: 'error', event: 'slow reader thread exited' }])
})

t.test('reads known to be long leave one thread to others', async t => {
  const { threads, spawn } = scriptedThreads()
  const { slow, clock } = await open(t, spawn)
  const page = (n: number) => sql<{ n: number }>`select ${n} as n`.execute(slow)
  const told = (value: number) => ({ columns: ['n'], rows: [[value]] })
  const first = countTo(slow, 1)
  await nextTurn()
  await clock.advance(200)
  threads[0]?.answer(told(1))
  await first
  const [second, third, quick] = [countTo(slow, 2), countTo(slow, 3), page(4)]
  await nextTurn()
  t.match(
    threads.map(({ posted }) => posted.at(-1)),
    [{ parameters: [2] }, { parameters: [4] }],
    'the page does not wait for those that came before it',
  )
  threads[1]?.answer(told(4))
  t.same((await quick).rows, [{ n: 4 }])
  t.equal(threads[1]?.posted.length, 1, 'nor is its thread taken now')
  threads[0]?.answer(told(2))
  threads[0]?.answer(told(3))
  t.same((await second).rows, [{ n: 2 }])
  t.same((await third).rows, [{ n: 3 }])
  // It was quick this time, and is no longer held back.
  const [fourth, fifth] = [countTo(slow, 5), countTo(slow, 6)]
  await nextTurn()
  threads[0]?.answer(told(5))
  threads[1]?.answer(told(6))
  t.same((await fourth).rows, [{ n: 5 }])
  t.same((await fifth).rows, [{ n: 6 }])
})

t.test('exports run one statement at a time, and only while no page waits', async t => {
  const { threads, spawn } = scriptedThreads()
  const { database, slow } = await open(t, spawn)
  const told = (value: number) => ({ columns: ['n'], rows: [[value]] })
  const exporting = Array.from({ length: MAX_WAITING / 2 }, (_, at) => countTo(database.exportReader, at + 1))
  await nextTurn()
  const [first, second] = [countTo(slow, 501), countTo(slow, 502)]
  await nextTurn()
  t.match(
    threads.map(({ posted }) => posted),
    [[{ parameters: [1] }], [{ parameters: [501] }]],
    'a thread is free for the page, and the line for pages is empty',
  )
  threads[0]?.answer(told(1))
  t.match(threads[0]?.posted.at(-1), { parameters: [502] }, 'the second page goes before the other exports')
  threads[0]?.answer(told(502))
  threads[1]?.answer(told(501))
  t.same([(await first).rows, (await second).rows], [[{ n: 501 }], [{ n: 502 }]])
  t.match([threads[0]?.posted.length, threads[1]?.posted.length], [3, 1], 'one export continues')
  const rest = Promise.allSettled(exporting)
  await database[Symbol.asyncDispose]()
  t.match((await rest).slice(0, 2), [{ status: 'fulfilled' }, { status: 'rejected' }])
})
