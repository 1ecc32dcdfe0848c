/** Checkpoints beside the server's work: the log stays of bounded length, whatever reads in it and whatever ends. */
import t, { type Test } from 'tap'
import BetterSqlite from 'better-sqlite3'
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { spawnThread, type SpawnThread } from '../../src/world/threads.js'
import { until } from '../support/until.js'

const MEGABYTE = 1_048_576
const PIECE = randomBytes(MEGABYTE / 4)

async function open(t: Test, spawn: SpawnThread = spawnThread, clock = new FakeClock()) {
  const file = join(t.testdir(), 'postroad.db')
  const log = new FakeLog()
  const database = await openSqlite({ file, clock, checkpoints: { spawn, log } })
  await database.write(({ db }) => sql`create table pieces (octets blob)`.execute(db))
  return {
    file,
    log,
    database,
    write: async (megabytes: number): Promise<void> => {
      for (let count = 0; count < 4 * megabytes; count++)
        await database.write(({ db }) => sql`insert into pieces values (${PIECE})`.execute(db))
    },
    logMegabytes: () => statSync(`${file}-wal`).size / MEGABYTE,
  }
}

function piecesIn(file: string): unknown {
  const handle = new BetterSqlite(file, { readonly: true })
  try {
    return handle.prepare('select count(*) as count, min(length(octets)) as least from pieces').get()
  } finally {
    handle.close()
  }
}

t.test('the log restarts under continuous writing, and nothing is lost', async t => {
  const { file, log, database, write, logMegabytes } = await open(t)
  await write(20)
  await until('the thread has begun', () => statSync(file).size > 8 * MEGABYTE)
  await write(160)
  t.ok(logMegabytes() < 120, `the log is ${logMegabytes()} MB long`)
  await database[Symbol.asyncDispose]()
  t.same(piecesIn(file), { count: 720, least: PIECE.length })
  t.same(log.lines, [])
})

t.test('a long read makes the log longer and delays nobody', async t => {
  const { file, database, write, logMegabytes } = await open(t)
  t.teardown(() => database[Symbol.asyncDispose]())
  const other = new BetterSqlite(file, { readonly: true })
  other.exec('begin')
  other.prepare('select count(*) from pieces').get()
  await write(80)
  t.ok(logMegabytes() > 75, 'what he may still read is kept')
  other.exec('commit')
  other.close()
  // The next time that it is long enough, or one of those after it where the disk is slow.
  const lengths = [0]
  while (logMegabytes() > (lengths.at(-1) ?? 0) && lengths.length < 25) {
    lengths.push(logMegabytes())
    await write(20)
  }
  t.ok(lengths.length < 25, `the log restarts in place: ${lengths.map(Math.round).join(' ')}`)
})

/** A thread that hears nothing until it is released. */
function heldBack(): { readonly spawn: SpawnThread; readonly release: () => void } {
  const held: (() => void)[] = []
  let isHeld = true
  return {
    spawn: (entry, parts) => {
      const real = spawnThread(entry, parts)
      return {
        ...real,
        post: message => {
          if (isHeld) held.push(() => real.post(message))
          else real.post(message)
        },
      }
    },
    release() {
      isHeld = false
      for (const post of held.splice(0)) post()
    },
  }
}

t.test('long work eventually waits for a full log, other work does not', async t => {
  const thread = heldBack()
  const { database, file, logMegabytes } = await open(t, thread.spawn)
  let pieces = 0
  const long = async () => {
    for (; pieces < 200; pieces += 1)
      await database.write(({ db }) => sql`insert into pieces values (${PIECE})`.execute(db), {
        isLong: true,
      })
  }
  const longWork = long()
  let seen = 0
  let unchanged = 0
  await until('long work waits, though the log may still become a quarter longer', () => {
    unchanged = pieces === seen ? unchanged + 1 : 0
    seen = pieces
    return unchanged === 50 && logMegabytes() > 40
  })
  const before = pieces
  for (let count = 0; count < 24; count += 1)
    await database.write(({ db }) => sql`insert into pieces values (${PIECE.subarray(0, 9)})`.execute(db))
  t.ok(pieces <= before + 1, `${pieces - before} pieces meanwhile`)
  thread.release()
  await longWork
  await database[Symbol.asyncDispose]()
  t.same(piecesIn(file), { count: 224, least: 9 })
})

t.test('a thread that gives no answer holds up nobody for long', async t => {
  const silent: SpawnThread = () => ({ post: () => {}, terminate: () => Promise.resolve() })
  const { database, file, write } = await open(t, silent)
  await write(80)
  void database[Symbol.asyncDispose]()
  t.same(piecesIn(file), { count: 320, least: PIECE.length })
})

t.test('while a long log is brought over long work waits, and nobody else', async t => {
  const thread = heldBack()
  const { database, write } = await open(t, thread.spawn)
  t.teardown(() => database[Symbol.asyncDispose]())
  await write(50)
  const order: string[] = []
  const long = database.write(async () => void order.push('long work'), { isLong: true })
  await write(4)
  order.push('a request')
  thread.release()
  await long
  t.same(order, ['a request', 'long work'])
})

t.test('if the thread fails, that is logged and commits checkpoint inline', async t => {
  const ending: SpawnThread = (_entry, { onEnd }) => {
    queueMicrotask(() => onEnd({ exitCode: 1 }))
    return { post: () => {}, terminate: () => Promise.resolve() }
  }
  const { file, log, database, write, logMegabytes } = await open(t, ending)
  await write(80)
  t.match(log.lines, [{ level: 'error', event: 'checkpoint thread failed' }])
  t.ok(logMegabytes() < 60, `the log is ${logMegabytes()} MB long`)
  await database[Symbol.asyncDispose]()
  t.same(piecesIn(file), { count: 320, least: PIECE.length })
})

/** A thread whose disk is full until released; then the real one. */
function onFullDisk() {
  const disk = { isFull: true, refused: 0 }
  const spawn: SpawnThread = (entry, parts) => {
    const real = spawnThread(entry, parts)
    return {
      ...real,
      post: message => {
        if (!disk.isFull) {
          real.post(message)
          return
        }
        disk.refused += 1
        queueMicrotask(() => parts.onMessage({ error: 'SQLITE_FULL: database or disk is full' }))
      },
      terminate: () => real.terminate(),
    }
  }
  return { disk, spawn }
}

t.test(
  'while the disk is full commits bring the log over, and the thread again once there is room',
  async t => {
    const clock = new FakeClock()
    const { disk, spawn } = onFullDisk()
    const { file, log, database, write, logMegabytes } = await open(t, spawn, clock)
    await write(80)
    t.equal(disk.refused, 1, 'it is not tried again with every commit')
    t.ok(logMegabytes() < 60, `the log is ${logMegabytes()} MB long`)
    const triedAt: number[] = []
    for (let second = 1; second <= 16; second += 1) {
      const before = disk.refused
      clock.skip(1_000)
      await write(10)
      if (disk.refused > before) triedAt.push(second)
    }
    t.same(triedAt, [1, 3, 7, 15], 'ever more rarely')
    disk.isFull = false
    clock.skip(16_000)
    await write(10)
    await until('the thread has done it', () => log.lines.length > 1)
    t.match(log.lines, [
      { level: 'error', event: 'checkpoint thread failed' },
      { level: 'info', event: 'checkpoint thread recovered' },
    ])
    t.equal(log.lines.length, 2, 'each is logged once')
    await write(80)
    t.ok(logMegabytes() < 120, `the log is ${logMegabytes()} MB long`)
    await database[Symbol.asyncDispose]()
    t.same(piecesIn(file), { count: 4 * 330, least: PIECE.length })
  },
)
