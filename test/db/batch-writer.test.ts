/** Batches: what is retried, what is isolated, and in which state an item that cannot be written ends. */
import t, { type Test } from 'tap'
import { AppError } from '../../src/core/errors.js'
import { given } from '../../src/core/given.js'
import { BatchWriter } from '../../src/db/batch-writer.js'
import type { Database, Tx } from '../../src/db/database.js'
import { isTransient } from '../../src/db/faults/transient-error.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase } from '../support/db/database.js'
import { until } from '../support/turns.js'

/** Items are numbers; `record` refuses those of `poison`, the fallback those of `poisonForFallback`. */
async function open(
  t: Test,
  poison: (item: number) => Error | undefined,
  forFallback = poison,
  gatherMs?: number,
) {
  const database: Database = await sqliteDatabase(t)
  const [clock, log] = [new FakeClock(), new FakeLog()]
  const [recorded, fallenBack, abandoned]: number[][] = [[], [], []]
  let transactions = 0
  const refuse = (error: Error | undefined) => {
    transactions += 1
    if (error) throw error
  }
  const writer = new BatchWriter<number, 'whole' | 'partly'>(
    { database, clock, log, random: new SeededRandom() },
    {
      events: {
        writeFailed: 'delivery outcome write failed',
        incomplete: 'delivery outcome recorded incompletely',
        abandoned: 'delivery outcome abandoned',
      },
      size: 50,
      ...given({ gatherMs }),
      record: async (_: Tx, batch) => {
        refuse(batch.map(poison).find(error => error !== undefined))
        return 'whole'
      },
      fallbacks: [
        async (_, item) => {
          refuse(forFallback(item))
          return 'partly'
        },
      ],
      onRecorded: (batch, how) => (how === 'whole' ? recorded! : fallenBack!).push(...batch),
      onAbandoned: item => abandoned!.push(item),
      describe: item => ({ item }),
    },
  )
  return { writer, clock, log, recorded, fallenBack, abandoned, transactions: () => transactions }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)
const events = (log: FakeLog) => log.lines.map(({ event }) => event)

t.test('one item that cannot be written is isolated, all others go through without a wait', async t => {
  const { writer, recorded, fallenBack, abandoned, log, transactions } = await open(
    t,
    item => (item === 70 ? new Error('UNIQUE constraint failed') : undefined),
    () => undefined,
  )
  for (const item of upTo(200)) writer.add(item)
  await writer.idle()
  t.same(
    recorded,
    upTo(200).filter(item => item !== 70),
  )
  t.same(fallenBack, [70])
  t.same(abandoned, [])
  t.same(events(log), ['delivery outcome recorded incompletely'])
  t.match(log.lines, [{ fields: { item: 70, error: /UNIQUE/ } }])
  t.ok(transactions() < 30, `${transactions()} transactions`)
})

t.test('an item that the fallback refuses as well is abandoned', async t => {
  const { writer, recorded, abandoned, log } = await open(t, item =>
    item % 10 === 0 ? new Error('no') : undefined,
  )
  for (const item of upTo(30)) writer.add(item)
  await writer.idle()
  t.same(abandoned, [0, 10, 20])
  t.equal(recorded?.length, 27)
  t.same(events(log), Array(3).fill('delivery outcome abandoned'))
})

t.test(
  'while the database is unavailable nothing is isolated, and everything is retried in its order',
  async t => {
    let isFull = true
    const { writer, clock, recorded, fallenBack, log } = await open(t, () =>
      isFull ? new AppError('unavailable', 'the disk is full') : undefined,
    )
    for (const item of upTo(3)) writer.add(item)
    await until('it has failed', () => log.lines.length > 0)
    t.match(log.lines[0], { event: 'delivery outcome write failed', fields: { waiting: 3 } })
    isFull = false
    await clock.advance(60_000)
    await writer.idle()
    t.same([recorded, fallenBack], [upTo(3), []])
  },
)

t.test('a lock, a full disk, a deadlock and a lost connection are temporary; a constraint is not', t => {
  const withCode = (code: string) => Object.assign(new Error(code), { code })
  for (const code of [
    'SQLITE_BUSY',
    'SQLITE_FULL',
    'SQLITE_IOERR_WRITE',
    '40P01',
    '53100',
    '08006',
    'ECONNRESET',
  ])
    t.ok(isTransient(withCode(code)), code)
  for (const code of ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_TOOBIG', '23505', '22021', 'ERR_INVALID_ARG_TYPE'])
    t.notOk(isTransient(withCode(code)), code)
  t.notOk(isTransient(new TypeError('x is undefined')))
  t.end()
})

t.test('an item added just as the last batch ends is recorded', async t => {
  const database = await sqliteDatabase(t)
  const recorded: number[] = []
  const writer = new BatchWriter<number, void>(
    { database, clock: new FakeClock(), log: new FakeLog(), random: new SeededRandom() },
    {
      events: { writeFailed: 'delivery outcome write failed', abandoned: 'delivery outcome abandoned' },
      size: 50,
      record: () => Promise.resolve(),
      // The next item follows after as many microtasks as its number says.
      onRecorded([item = 0]) {
        recorded.push(item)
        void (async () => {
          for (let step = 0; step < item; step += 1) await Promise.resolve()
          if (item < 12) writer.add(item + 1)
        })()
      },
      onAbandoned: () => {},
      describe: item => ({ item }),
    },
  )
  writer.add(0)
  await until('all to be recorded', () => recorded.length === 13)
})

t.test('with a pause after each batch, what arrives during it shares a commit', async t => {
  const none = () => undefined
  const { writer, recorded, transactions } = await open(t, none, none, 200)
  for (const item of upTo(2)) writer.add(item)
  await until('the first batch is recorded', () => recorded?.length === 2)
  for (const item of [2, 3, 4]) {
    writer.add(item)
    await new Promise(setImmediate)
  }
  await writer.idle()
  t.same(recorded, upTo(5))
  t.equal(transactions(), 2)
})
