/** Clicks and opens on their way from the answer to the history of messages: kept first, counted once, by people or machines. */
import t, { type Test } from 'tap'
import { AppError } from '../../src/core/errors.js'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { insertContent } from '../../src/messages/content-store.js'
import { findAnyMessage, insertMessages } from '../../src/messages/message-store.js'
import { VisitCounter } from '../../src/tracking/visits/visit-counter.js'
import { VisitRecorder, type VisitBounds } from '../../src/tracking/visits/visit-recorder.js'
import { countVisits, listVisits, type Visit } from '../../src/tracking/visits/visit-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { addWorkspace, CONTENT, NOW } from '../support/mailroom.js'
import { until } from '../support/until.js'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const LATE = NOW + 3_600_000

const click = (messageId: string, url: string, more: Partial<Visit> = {}): Visit => ({
  kind: 'click',
  messageId,
  at: LATE,
  address: '192.0.2.7',
  userAgent: BROWSER,
  isHead: false,
  url,
  ...more,
})
const opening = (messageId: string, more: Partial<Visit> = {}): Visit => ({
  kind: 'open',
  messageId,
  at: LATE,
  address: '192.0.2.7',
  userAgent: BROWSER,
  isHead: false,
  ...more,
})

async function addMessages(database: Database, ...ids: string[]): Promise<void> {
  await addWorkspace(database)
  await database.write(async tx => {
    await insertContent(tx.db, CONTENT)
    const messages = ids.map(
      id => ({ id, recipient: `${id}@x.example`, status: 'sent', reason: null }) as const,
    )
    await insertMessages(tx.db, CONTENT, false, messages)
  })
}

/** Recorder and counter as the server opens them, a while after `NOW`. @param isCounting false: it begins when the test wakes it */
async function openTracking(
  t: Test,
  database: Database,
  { bounds, isCounting = true }: { bounds?: VisitBounds; isCounting?: boolean } = {},
) {
  const clock = new FakeClock()
  const log = new FakeLog()
  const parts = { database, clock, log, random: new SeededRandom(), onEvents() {} }
  const recorder = new VisitRecorder(parts, await countVisits(database.reader), bounds)
  const counter = new VisitCounter({ ...parts, recorder })
  if (isCounting) recorder.onStored = () => counter.wake()
  const close = async () => {
    await recorder.close()
    await counter.stop()
  }
  t.teardown(close)
  await clock.advance(LATE - NOW + 2_000)
  if (isCounting) counter.wake()
  return { recorder, counter, clock, log, close }
}

async function events(database: Database) {
  return readEventsAfter(database.reader, 0, ['email.opened', 'email.clicked'], 10_000)
}

const counts = (database: Database, count: number) =>
  until(`${count} visits to be counted`, async () => (await events(database)).length >= count)

eachDatabase(
  t,
  'a click and an open by a person change the message and are logged as events',
  async (t, database) => {
    await addMessages(database, 'm1', 'm2')
    const { recorder } = await openTracking(t, database)
    t.equal(await recorder.record(opening('m1')), true)
    t.equal(await recorder.record(click('m2', 'https://x.example/?a=ä')), true)
    await counts(database, 3)
    t.match(await findAnyMessage(database.reader, 'm1'), { status: 'opened', openedAt: LATE })
    t.match(await findAnyMessage(database.reader, 'm2'), {
      status: 'clicked',
      clickedAt: LATE,
      openedAt: LATE,
    })
    t.match(await events(database), [
      {
        kind: 'email.opened',
        messageId: 'm1',
        payload: { to: 'm1@x.example', ip: '192.0.2.7', isBot: false },
      },
      {
        kind: 'email.opened',
        messageId: 'm2',
        payload: { userAgent: BROWSER, isBot: false, isInferred: true },
      },
      {
        kind: 'email.clicked',
        messageId: 'm2',
        payload: { url: 'https://x.example/?a=ä', userAgent: BROWSER, isBot: false },
      },
    ])
  },
)

eachDatabase(t, 'a visit by a machine is logged as an event and changes nothing', async (t, database) => {
  await addMessages(database, 'm1')
  const { recorder } = await openTracking(t, database)
  const machines = [
    opening('m1', { userAgent: 'Mozilla/5.0' }),
    opening('m1', { userAgent: '' }),
    click('m1', 'https://x.example/', { isHead: true }),
    click('m1', 'https://x.example/', { address: '40.107.1.2' }),
    click('m1', 'https://x.example/', { userAgent: 'Mozilla/5.0 (compatible; Googlebot/2.1)' }),
  ]
  for (const visit of machines) await recorder.record(visit)
  await counts(database, machines.length)
  t.ok((await events(database)).every(event => 'isBot' in event.payload && event.payload.isBot))
  t.match(await findAnyMessage(database.reader, 'm1'), { status: 'sent', openedAt: null, clickedAt: null })
})

eachDatabase(
  t,
  'following all links right after delivery is a machine, from the first click on',
  async (t, database) => {
    await addMessages(database, 'm1', 'm2')
    const { recorder, counter } = await openTracking(t, database, { isCounting: false })
    const soon = NOW + 5_000
    for (const [n, url] of ['a', 'b', 'c', 'd'].entries())
      await recorder.record(click('m1', `https://x.example/${url}`, { at: soon + n * 200 }))
    // A person who is quick, and one who clicks twice.
    for (const at of [soon, soon + 300, soon + 4_000])
      await recorder.record(click('m2', 'https://x.example/a', { at }))
    counter.wake()
    await counts(database, 8)
    const isBot = (await events(database)).map(({ messageId, payload }) => [
      messageId,
      'isBot' in payload && payload.isBot,
    ])
    t.same(
      isBot.filter(([id]) => id === 'm1').map(([, bot]) => bot),
      [true, true, true, true],
    )
    t.same(
      isBot.filter(([id]) => id === 'm2').map(([, bot]) => bot),
      [false, false, false, false],
    )
    t.match(await findAnyMessage(database.reader, 'm1'), { status: 'sent' })
  },
)

eachDatabase(
  t,
  'a burst long after delivery is a person, unless it covers nearly all links',
  async (t, database) => {
    const links = (count: number) =>
      Array.from({ length: count }, (_, n) => `<a href="https://x.example/${n}">${n}</a>`).join('')
    await addWorkspace(database)
    await database.write(async tx => {
      for (const [id, count] of Object.entries({ few: 5, many: 12 })) {
        const content = { ...CONTENT, id: `content of ${id}`, html: links(count) }
        await insertContent(tx.db, content)
        const message = { id, recipient: `${id}@x.example`, status: 'sent', reason: null } as const
        await insertMessages(tx.db, content, false, [message])
      }
    })
    const { recorder, counter } = await openTracking(t, database, { isCounting: false })
    for (const id of ['few', 'many'])
      for (let n = 0; n < 4; n += 1)
        await recorder.record(click(id, `https://x.example/${n}`, { at: NOW + 40_000 + n * 100 }))
    for (let n = 0; n < 3; n += 1)
      await recorder.record(click('few', `https://x.example/${n}`, { at: NOW + 60_000 + n * 200 }))
    counter.wake()
    await counts(database, 13)
    const isBotAt = (id: string, from: number) =>
      all.flatMap(({ kind, messageId, occurredAt, payload }) => {
        const isMeant = messageId === id && occurredAt >= NOW + from && occurredAt < NOW + from + 1_000
        return kind === 'email.clicked' && isMeant && 'isBot' in payload ? [payload.isBot] : []
      })
    const all = await events(database)
    t.same(isBotAt('few', 40_000), [true, true, true, true], 'four of five')
    t.same(isBotAt('many', 40_000), [false, false, false, false], 'four of twelve')
    t.same(isBotAt('few', 60_000), [false, false, false], 'three of five')
  },
)

eachDatabase(t, 'visits stored before a crash are counted once after it', async (t, database) => {
  await addMessages(database, 'm1', 'm2')
  const before = await openTracking(t, database)
  await before.recorder.record(opening('m1'))
  await counts(database, 1)
  await before.counter.stop()
  t.equal(await before.recorder.record(opening('m2')), true)
  t.equal(await countVisits(database.reader), 1)

  const after = await openTracking(t, database)
  await counts(database, 2)
  t.equal(await after.recorder.record(click('m2', 'https://x.example/')), true)
  await counts(database, 3)
  t.same(
    (await events(database)).map(({ kind, messageId }) => `${kind} ${messageId}`),
    ['email.opened m1', 'email.opened m2', 'email.clicked m2'],
  )
  t.equal(await countVisits(database.reader), 0)
})

eachDatabase(t, 'visits of deleted messages do not stop counting', async (t, database) => {
  await addMessages(database, 'm1')
  const { recorder } = await openTracking(t, database)
  await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      recorder.record(click(n % 2 === 0 ? 'm1' : 'gone', `https://x.example/${n}`)),
    ),
  )
  await counts(database, 100)
  t.equal((await events(database)).length, 100)
  await until('all to be counted', async () => (await listVisits(database.reader, 0, 1)).length === 0)
})

t.test('beyond its bounds visits are dropped, which is logged once a minute', async t => {
  const database = await sqliteDatabase(t)
  const { recorder, counter, clock, log } = await openTracking(t, database, {
    bounds: { buffered: 10, uncounted: 25 },
  })
  await counter.stop()
  const atOnce = await Promise.all(Array.from({ length: 50 }, () => recorder.record(opening('m1'))))
  t.equal(atOnce.filter(Boolean).length, 10, 'no more than fit in memory')
  const inTurn: boolean[] = []
  for (let n = 0; n < 20; n += 1) inTurn.push(await recorder.record(opening('m1')))
  t.equal(inTurn.filter(Boolean).length, 15, 'no more than may wait to be counted')
  t.equal(log.lines.length, 1)
  await clock.advance(60_000)
  t.equal(await recorder.record(opening('m1')), false)
  t.equal(log.lines.length, 2)
  recorder.noteCounted(25)
  t.equal(await recorder.record(opening('m1')), true)
})

t.test(
  'while the database cannot be written readers wait for nothing, and visits are stored afterwards',
  async t => {
    const database = await sqliteDatabase(t)
    let isFull = true
    const failing: Database = {
      ...database,
      reader: database.reader,
      write: (work, options) =>
        isFull ? Promise.reject(new AppError('unavailable', 'disk full')) : database.write(work, options),
    }
    const clock = new FakeClock()
    const log = new FakeLog()
    const recorder = new VisitRecorder({ database: failing, clock, log, random: new SeededRandom() }, 0)
    const first = recorder.record(opening('m1'))
    await clock.advance(500)
    t.equal(await first, false)
    const second = recorder.record(opening('m2'))
    await clock.advance(0)
    t.equal(await second, false, 'answered without the wait for a commit')
    isFull = false
    await clock.advance(60_000)
    await recorder.close()
    t.match(await listVisits(database.reader, 0, 10), [{ messageId: 'm1' }, { messageId: 'm2' }])
    t.ok(log.lines.every(({ event }) => event === 'visit write failed'))
  },
)
