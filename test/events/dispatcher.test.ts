/** The dispatcher: every consumer sees every event once in the database's eyes, whatever fails on the way. */
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import type { Database } from '../../src/db/database.js'
import { Dispatcher, type EventConsumer } from '../../src/events/dispatcher.js'
import type { Event } from '../../src/events/event.js'
import { appendEvents, readCursor } from '../../src/events/store.js'
import { FakeClock } from '../../src/world/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { sqliteDatabase } from '../support/database.js'
import { settleDown, until } from '../support/turns.js'

const accepted = (messageId: string): Event => ({
  kind: 'email.accepted',
  workspaceId: 'w1',
  messageId,
  isSandbox: false,
  occurredAt: 0,
  payload: { to: 'ann@example.com' },
})

/** A consumer that writes down each message id it sees, in the transaction it is given. */
function diary(
  name: string,
  before: (ids: readonly string[]) => void | Promise<void> = () => undefined,
): EventConsumer {
  return {
    name,
    kinds: ['email.accepted'],
    async react(tx, events) {
      for (const { messageId } of events)
        await sql`insert into diary values (${name}, ${messageId})`.execute(tx.db)
      await before(events.map(event => event.messageId))
    },
  }
}

async function world(t: Test, consumers: readonly EventConsumer[]) {
  const database = await sqliteDatabase(t)
  await database.write(({ db }) => sql`create table diary (consumer text, message text)`.execute(db))
  const clock = new FakeClock()
  const log = new FakeLog()
  const parts = { database, clock, log, random: new SeededRandom() }
  const dispatcher = new Dispatcher(parts, consumers)
  t.teardown(() => dispatcher.stop())
  return {
    ...parts,
    dispatcher,
    append: (...ids: string[]) => database.write(tx => appendEvents(tx, ids.map(accepted))),
    seenBy: (name: string) => seenBy(database, name),
    hasSeen: (name: string, count: number) =>
      until(`${name} sees ${count}`, async () => (await seenBy(database, name)).length >= count),
  }
}

async function seenBy(database: Database, consumer: string): Promise<string[]> {
  const { rows } = await sql<{
    message: string
  }>`select message from diary where consumer = ${consumer} order by rowid`.execute(database.reader)
  return rows.map(row => row.message)
}

t.test('what was appended while nobody ran is caught up with at the start, in order', async t => {
  const { dispatcher, append, seenBy, hasSeen } = await world(t, [diary('stats')])
  const ids = Array.from({ length: 250 }, (_, n) => `m${n}`)
  await append(...ids)
  dispatcher.start()
  await hasSeen('stats', 250)
  t.same(await seenBy('stats'), ids)
})

t.test('a woken dispatcher brings what is new, and only that', async t => {
  const { dispatcher, append, seenBy, hasSeen } = await world(t, [diary('stats'), diary('webhooks')])
  dispatcher.start()
  await append('m1')
  dispatcher.wake()
  await hasSeen('stats', 1)
  await append('m2')
  dispatcher.wake()
  await hasSeen('stats', 2)
  await hasSeen('webhooks', 2)
  t.same(await seenBy('stats'), ['m1', 'm2'])
  t.same(await seenBy('webhooks'), ['m1', 'm2'])
})

t.test('another dispatcher goes on where the last one stopped', async t => {
  const { dispatcher, append, seenBy, hasSeen, ...parts } = await world(t, [diary('stats')])
  await append('m1', 'm2')
  dispatcher.start()
  await hasSeen('stats', 2)
  await dispatcher.stop()
  await append('m3')
  dispatcher.wake()
  await settleDown()
  t.same(await seenBy('stats'), ['m1', 'm2'], 'a stopped one reacts to nothing')
  const next = new Dispatcher(parts, [diary('stats')])
  next.start()
  await hasSeen('stats', 3)
  await next.stop()
  t.same(await seenBy('stats'), ['m1', 'm2', 'm3'])
})

t.test('a consumer that fails is tried again later, later each time, while the others go on', async t => {
  let failures = 0
  const flaky = diary('flaky', () => {
    if (failures === 3) return
    failures += 1
    throw new Error('not today')
  })
  const { dispatcher, append, seenBy, hasSeen, clock, log, database } = await world(t, [
    flaky,
    diary('steady'),
  ])
  await append('m1', 'm2')
  dispatcher.start()
  await hasSeen('steady', 2)
  await until('the first failure is logged', () => log.lines.length === 1)
  t.match(log.lines[0], {
    level: 'error',
    event: 'event consumer failed',
    fields: { consumer: 'flaky', error: 'not today' },
  })
  t.same(await seenBy('flaky'), [], 'what it wrote before it failed is undone')
  t.equal(await readCursor(database.reader, 'flaky'), 0)
  await append('m3')
  dispatcher.wake()
  await hasSeen('steady', 3)
  t.equal(failures, 1, 'a wake does not cut its pause short')
  for (const expected of [2, 3]) {
    await clock.advance(Number(log.lines.at(-1)?.fields['retryInMs']))
    await until('it fails again', () => log.lines.length === expected)
  }
  const pauses = log.lines.map(line => Number(line.fields['retryInMs']))
  t.ok(pauses[0]! < pauses[1]! && pauses[1]! < pauses[2]!, 'each pause is longer')
  await clock.advance(pauses[2]!)
  await hasSeen('flaky', 3)
  t.same(await seenBy('flaky'), ['m1', 'm2', 'm3'])
  t.same(await seenBy('steady'), ['m1', 'm2', 'm3'])
})

t.test('a wake while a consumer is at work is not lost', async t => {
  let goOn: () => void = () => undefined
  let isAtWork = false
  const slow = diary('slow', async ids => {
    if (!ids.includes('m1')) return
    isAtWork = true
    await new Promise<void>(resolve => (goOn = resolve))
  })
  const { dispatcher, append, seenBy, hasSeen } = await world(t, [slow])
  await append('m1')
  dispatcher.start()
  await until('it is at work', () => isAtWork)
  const appended = append('m2')
  dispatcher.wake()
  goOn()
  await appended
  dispatcher.wake()
  await hasSeen('slow', 2)
  t.same(await seenBy('slow'), ['m1', 'm2'])
})

t.test('stopping waits for the consumer that is at work, and starts no retry', async t => {
  let goOn: () => void = () => undefined
  let isAtWork = false
  const slow = diary('slow', async () => {
    isAtWork = true
    await new Promise<void>(resolve => (goOn = resolve))
  })
  const broken = diary('broken', () => {
    throw new Error('never')
  })
  const { dispatcher, append, seenBy, clock, log } = await world(t, [broken, slow])
  await append('m1')
  dispatcher.start()
  await until('both ran', () => isAtWork)
  let isStopped = false
  const stopped = dispatcher.stop().then(() => (isStopped = true))
  await settleDown()
  t.equal(isStopped, false)
  goOn()
  await stopped
  t.same(await seenBy('slow'), ['m1'])
  const failures = log.lines.filter(line => line.level === 'error').length
  await clock.advance(3_600_000)
  await settleDown()
  t.equal(log.lines.filter(line => line.level === 'error').length, failures)
})

t.test('a consumer of rare kinds does not read the same others again and again', async t => {
  const { database, dispatcher, append } = await world(t, [{ ...diary('rare'), kinds: ['email.failed'] }])
  await append(...Array.from({ length: 1_001 }, (_, index) => `m${index}`))
  dispatcher.wake()
  await until('the cursor is past them', async () => (await readCursor(database.reader, 'rare')) === 1_001)
})
