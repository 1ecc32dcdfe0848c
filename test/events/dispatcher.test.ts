/** The dispatcher: every consumer sees every event once in the database's eyes, whatever fails on the way. */
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import type { Database } from '../../src/db/database.js'
import type { EventConsumer } from '../../src/events/consumer.js'
import { Dispatcher } from '../../src/events/dispatcher.js'
import type { Event } from '../../src/events/event.js'
import { APPLIANCE } from '../../src/core/owner.js'
import { countSetAside, dropSetAside, listSetAside, requestRetry } from '../../src/events/set-aside-store.js'
import { appendEvents, findCursor } from '../../src/events/store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { sqliteDatabase } from '../support/db/database.js'
import { losingAnswers } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

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
  startsAt: EventConsumer['startsAt'] = 'oldest',
): EventConsumer {
  return {
    name,
    startsAt,
    kinds: ['email.accepted'],
    async react(tx, events) {
      for (const { messageId } of events)
        await sql`insert into diary values (${name}, ${messageId})`.execute(tx.db)
      await before(events.map(event => event.messageId))
    },
  }
}

async function world(
  t: Test,
  consumers: readonly EventConsumer[],
  through: (database: Database) => Database = database => database,
) {
  const database = await sqliteDatabase(t)
  await database.write(({ db }) => sql`create table diary (consumer text, message text)`.execute(db))
  const clock = new FakeClock()
  const log = new FakeLog()
  const parts = { database, clock, log, random: new SeededRandom() }
  const dispatcher = new Dispatcher({ ...parts, database: through(database) }, consumers)
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

t.test('events appended while stopped are processed at the start, in order', async t => {
  const { dispatcher, append, seenBy, hasSeen } = await world(t, [diary('stats')])
  const ids = Array.from({ length: 250 }, (_, n) => `m${n}`)
  await append(...ids)
  await dispatcher.start()
  await hasSeen('stats', 250)
  t.same(await seenBy('stats'), ids)
})

t.test('a batch holds as many events as their weight allows, and at least one', async t => {
  const batches: string[][] = []
  const heavy = { m1: 40, m2: 60, m3: 500, m4: 1, m5: 99, m6: 1 } as const
  const consumer: EventConsumer = {
    ...diary('stats', ids => void batches.push([...ids])),
    weigh: ({ messageId }) => heavy[messageId as keyof typeof heavy],
  }
  const { dispatcher, append, hasSeen } = await world(t, [consumer])
  await append('m4', 'm5', 'm3', 'm1', 'm2', 'm6')
  await dispatcher.start()
  await hasSeen('stats', 6)
  t.ok(
    batches.some(ids => ids.join() === 'm3'),
    JSON.stringify(batches),
  )
  t.notOk(batches.some(ids => ids.length > 1 && ids.reduce((sum, id) => sum + heavy[id as 'm1'], 0) > 100))
})

t.test('a woken dispatcher delivers new events only', async t => {
  const { dispatcher, append, seenBy, hasSeen } = await world(t, [diary('stats'), diary('webhooks')])
  await dispatcher.start()
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

t.test('another dispatcher continues where the last one stopped', async t => {
  const { dispatcher, append, seenBy, hasSeen, ...parts } = await world(t, [diary('stats')])
  await append('m1', 'm2')
  await dispatcher.start()
  await hasSeen('stats', 2)
  await dispatcher.stop()
  await append('m3')
  dispatcher.wake()
  await comeToRest()
  t.same(await seenBy('stats'), ['m1', 'm2'], 'a stopped one reacts to nothing')
  const next = new Dispatcher(parts, [diary('stats')])
  await next.start()
  await hasSeen('stats', 3)
  await next.stop()
  t.same(await seenBy('stats'), ['m1', 'm2', 'm3'])
})

t.test('a failing consumer is retried with backoff while the others continue', async t => {
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
  await dispatcher.start()
  await hasSeen('steady', 2)
  await until('the first failure is logged', () => log.lines.length === 1)
  t.match(log.lines[0], {
    level: 'error',
    event: 'event consumer failed',
    fields: { consumer: 'flaky', error: 'not today' },
  })
  t.same(await seenBy('flaky'), [], 'what it wrote before it failed is undone')
  t.equal(await findCursor(database.reader, 'flaky'), undefined)
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

t.test('a wake during processing is not lost', async t => {
  let goOn: () => void = () => undefined
  let isAtWork = false
  const slow = diary('slow', async ids => {
    if (!ids.includes('m1')) return
    isAtWork = true
    await new Promise<void>(resolve => (goOn = resolve))
  })
  const { dispatcher, append, seenBy, hasSeen } = await world(t, [slow])
  await append('m1')
  await dispatcher.start()
  await until('it is at work', () => isAtWork)
  const appended = append('m2')
  dispatcher.wake()
  goOn()
  await appended
  dispatcher.wake()
  await hasSeen('slow', 2)
  t.same(await seenBy('slow'), ['m1', 'm2'])
})

t.test('stopping waits for the current batch and starts no retry', async t => {
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
  await dispatcher.start()
  await until('both ran', () => isAtWork)
  let isStopped = false
  const stopped = dispatcher.stop().then(() => (isStopped = true))
  await comeToRest()
  t.equal(isStopped, false)
  goOn()
  await stopped
  t.same(await seenBy('slow'), ['m1'])
  const failures = log.lines.filter(line => line.level === 'error').length
  await clock.advance(3_600_000)
  await comeToRest()
  t.equal(log.lines.filter(line => line.level === 'error').length, failures)
})

t.test('a consumer of rare kinds does not reread other events', async t => {
  const { database, dispatcher, append } = await world(t, [{ ...diary('rare'), kinds: ['email.failed'] }])
  await append(...Array.from({ length: 50_001 }, (_, index) => `m${index}`))
  await dispatcher.start()
  await until('the cursor is past them', async () => (await findCursor(database.reader, 'rare')) === 50_001)
})

t.test('a consumer refreshes its state after reading events, never before', async t => {
  let wanted = new Set<string>()
  const { database, dispatcher, append, seenBy, hasSeen } = await world(t, [
    {
      ...diary('choosy'),
      async refresh(db) {
        const { rows } = await sql<{ message: string }>`
          select message from diary where consumer = 'wanted'`.execute(db)
        wanted = new Set(rows.map(({ message }) => message))
      },
      concerns: ({ messageId }) => wanted.has(messageId),
    },
  ])
  await dispatcher.start()
  await append('before')
  for (const id of ['m1', 'm2', 'm3']) {
    await database.write(({ db }) => sql`insert into diary values ('wanted', ${id})`.execute(db))
    await append(`not ${id}`, id)
    dispatcher.wake()
    await hasSeen('choosy', Number(id.slice(1)))
  }
  t.same(await seenBy('choosy'), ['m1', 'm2', 'm3'])
})

t.test('a new consumer that begins at the newest event gets no earlier ones', async t => {
  const { dispatcher: _, append, seenBy, hasSeen, ...parts } = await world(t, [])
  await append('m1', 'm2')
  const webhooks = () => new Dispatcher(parts, [diary('webhooks', undefined, 'newest'), diary('stats')])
  const first = webhooks()
  await first.start()
  await append('m3')
  first.wake()
  await hasSeen('webhooks', 1)
  await hasSeen('stats', 3)
  await first.stop()
  t.same(await seenBy('webhooks'), ['m3'])
  await append('m4')
  const second = webhooks()
  await second.start()
  await hasSeen('webhooks', 2)
  await second.stop()
  t.same(await seenBy('webhooks'), ['m3', 'm4'], 'only a new one begins there')
})

t.test('a new consumer misses nothing after a crash before its first event', async t => {
  const { dispatcher: _, append, seenBy, hasSeen, ...parts } = await world(t, [])
  await append('m1')
  const crashed = new Dispatcher(parts, [diary('webhooks', undefined, 'newest')])
  await crashed.start()
  await crashed.stop()
  await append('m2')
  const next = new Dispatcher(parts, [diary('webhooks', undefined, 'newest')])
  await next.start()
  await hasSeen('webhooks', 1)
  await next.stop()
  t.same(await seenBy('webhooks'), ['m2'])
})

/** Turns the clock on until it is so; each pause of a failing consumer takes a turn. */
async function pass(clock: FakeClock, what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  await until(what, async () => {
    await clock.advance(60_000)
    return isSo()
  })
}

t.test('an event a consumer keeps failing on is set aside and blocks nothing', async t => {
  let isMended = false
  const picky = diary('picky', ids => {
    if (ids.includes('bad') && !isMended) throw new Error('cannot read this one')
  })
  const { dispatcher, append, seenBy, hasSeen, clock, log, database } = await world(t, [
    picky,
    diary('steady'),
  ])
  await append('m1', 'bad', 'm2', 'm3')
  await dispatcher.start()
  await hasSeen('steady', 4)
  await pass(clock, 'the others are seen', async () => (await seenBy('picky')).length === 3)
  t.same(await seenBy('picky'), ['m1', 'm2', 'm3'])
  t.equal(await dispatcher.passed(), 4, 'retention is not held back')
  t.match((await listSetAside(database.reader, { limit: 10, offset: 0 })).items, [
    { consumer: 'picky', event: { ...accepted('bad'), seq: 2 }, error: 'cannot read this one' },
  ])
  t.match(
    log.lines.find(({ event }) => event === 'event set aside'),
    {
      level: 'error',
      fields: { consumer: 'picky', seq: 2, messageId: 'bad', error: 'cannot read this one' },
    },
  )
  t.equal(log.lines.filter(({ event }) => event === 'event consumer failed').length, 5, 'after some tries')

  t.equal(await dispatcher.retrySetAside(), 0, 'nobody asked for it')
  await database.write(({ db }) => requestRetry(db, { isAll: true }))
  t.equal(await dispatcher.retrySetAside(), 0)
  t.equal(await dispatcher.retrySetAside(), 0, 'asked for once, tried once')
  t.equal(await countSetAside(database.reader), 1)
  isMended = true
  await database.write(({ db }) => requestRetry(db, { consumer: 'picky', seq: 2 }))
  t.equal(await dispatcher.retrySetAside(), 1)
  t.same(await seenBy('picky'), ['m1', 'm2', 'm3', 'bad'])
  t.equal(await countSetAside(database.reader), 0)
})

t.test('a damaged event, or one whose relevance check throws, is set aside', async t => {
  const reader: EventConsumer = {
    ...diary('reader'),
    concerns: ({ payload, messageId }) => {
      if (messageId === 'odd') throw new Error('whose is it?')
      return 'to' in payload
    },
  }
  const { dispatcher, append, seenBy, clock, database } = await world(t, [reader])
  await append('m1', 'damaged', 'm2', 'odd', 'm3')
  await database.write(({ db }) =>
    sql`update events set payload = '{"to' where message_id = 'damaged'`.execute(db),
  )
  await dispatcher.start()
  await pass(clock, 'the others are seen', async () => (await seenBy('reader')).length === 3)
  t.same(await seenBy('reader'), ['m1', 'm2', 'm3'])
  t.match((await listSetAside(database.reader, { limit: 10, offset: 0 })).items, [
    { event: { seq: 2, messageId: 'damaged', payload: null }, error: /JSON/ },
    { event: { ...accepted('odd'), seq: 4 }, error: 'whose is it?' },
  ])
  t.equal(await dispatcher.passed(), 5, 'retention is not held back')
})

t.test('set-aside events can be dropped', async t => {
  const broken = diary('broken', () => {
    throw new Error('never')
  })
  const { dispatcher, append, clock, database } = await world(t, [broken])
  await append('m1', 'm2')
  await dispatcher.start()
  await pass(clock, 'both are set aside', async () => (await countSetAside(database.reader)) === 2)
  t.equal(await database.write(({ db }) => dropSetAside(db, { consumer: 'broken', seq: 1 })), 1)
  t.equal(await database.write(({ db }) => dropSetAside(db, { consumer: 'other', seq: 2 })), 0)
  t.equal(await database.write(({ db }) => dropSetAside(db, { isAll: true })), 1)
})

t.test('a full disk does not set events aside', async t => {
  let isFull = true
  let tries = 0
  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  const writer = diary('writer', () => {
    tries += 1
    if (isFull) throw full
  })
  const { dispatcher, append, seenBy, clock, database } = await world(t, [writer])
  await append('m1')
  await dispatcher.start()
  await pass(clock, 'many tries', () => tries > 10)
  t.equal(await countSetAside(database.reader), 0)
  isFull = false
  await pass(clock, 'it is seen', async () => (await seenBy('writer')).length === 1)
})

t.test("only consumers that ask for it receive events of the appliance's own mail", async t => {
  const { dispatcher, append, database, seenBy, hasSeen } = await world(t, [
    diary('webhooks'),
    { ...diary('counter'), includesOwnMail: true },
  ])
  await database.write(tx => appendEvents(tx, [{ ...accepted('report'), workspaceId: APPLIANCE }]))
  await append('m1')
  await dispatcher.start()
  await hasSeen('counter', 2)
  await hasSeen('webhooks', 1)
  t.same(await seenBy('webhooks'), ['m1'])
  t.same(await seenBy('counter'), ['report', 'm1'])
})

t.test(
  'consumers are started and stopped by name; those of other nodes are known by their stored cursors',
  async t => {
    const { dispatcher, append, hasSeen, seenBy } = await world(t, [diary('mine'), diary('theirs')])
    await append('m1', 'm2')
    dispatcher.wake()
    await dispatcher.start(['mine'])
    await hasSeen('mine', 2)
    t.same(await seenBy('theirs'), [])
    t.match(await dispatcher.lags(), [{ consumer: 'mine', events: 0 }])
    t.equal(await dispatcher.passed(), 0, 'nothing may be deleted that the other has not seen')
    await dispatcher.start(['theirs'])
    await hasSeen('theirs', 2)
    t.equal(await dispatcher.passed(), 2)
    await dispatcher.stop(['mine'])
    await append('m3')
    dispatcher.wake()
    await hasSeen('theirs', 3)
    t.same(await seenBy('mine'), ['m1', 'm2'])
    t.equal(await dispatcher.passed(), 2)
    await dispatcher.start(['mine'])
    await hasSeen('mine', 3)
    t.same(await seenBy('mine'), ['m1', 'm2', 'm3'])
  },
)

t.test('events whose commit was made but never answered are consumed once', async t => {
  let losses = 0
  const { dispatcher, append, seenBy, hasSeen, clock } = await world(t, [diary('stats')], database =>
    losingAnswers(database, () => (losses += 1) <= 2),
  )
  await append('m1', 'm2')
  await dispatcher.start()
  for (let second = 0; second < 10; second += 1) {
    await clock.advance(1_000)
    await comeToRest()
  }
  await append('m3')
  dispatcher.wake()
  await hasSeen('stats', 3)
  t.same(await seenBy('stats'), ['m1', 'm2', 'm3'])
})
