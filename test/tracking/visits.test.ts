/** Clicks and opens on their way from the answer to the history of messages: kept first, counted once, by people or machines. */
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { insertContent } from '../../src/messages/content-store.js'
import { findAnyMessage, insertMessages } from '../../src/messages/message-store.js'
import { VisitCounter } from '../../src/tracking/visits/visit-counter.js'
import { VisitJournal, VisitReader, type Visit } from '../../src/tracking/visits/visit-journal.js'
import { findCountedPosition } from '../../src/tracking/visits/visit-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'
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

function ownFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-visits-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

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

/** The part of the program that keeps and counts; what is opened again goes on where the last one stopped. */
async function openTracking(t: Test, database: Database, folder: string, bounds?: object) {
  const clock = new FakeClock()
  const log = new FakeLog()
  const counted = await findCountedPosition(database.reader)
  const usual = { fileOctets: 1_000_000, files: 10, waitingUnits: 1_000_000 }
  const journal = await VisitJournal.open({ folder, clock, log }, counted.file, { ...usual, ...bounds })
  const reader = new VisitReader(folder, journal, counted)
  const parts = { database, clock, log, random: new SeededRandom(), journal, reader, onEvents() {} }
  const counter = new VisitCounter(parts, counted)
  journal.onAppend = () => counter.wake()
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    await journal.close()
    await counter.stop()
  }
  t.teardown(close)
  await clock.advance(LATE - NOW + 2_000)
  counter.wake()
  return { journal, counter, clock, log, close }
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
    const { journal } = await openTracking(t, database, ownFolder(t))
    t.equal(await journal.append(opening('m1')), true)
    t.equal(await journal.append(click('m2', 'https://x.example/?a=ä')), true)
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
  const { journal } = await openTracking(t, database, ownFolder(t))
  const machines = [
    opening('m1', { userAgent: 'Mozilla/5.0' }),
    opening('m1', { userAgent: '' }),
    click('m1', 'https://x.example/', { isHead: true }),
    click('m1', 'https://x.example/', { address: '40.107.1.2' }),
    click('m1', 'https://x.example/', { userAgent: 'Mozilla/5.0 (compatible; Googlebot/2.1)' }),
  ]
  for (const visit of machines) await journal.append(visit)
  await counts(database, machines.length)
  t.ok((await events(database)).every(event => 'isBot' in event.payload && event.payload.isBot))
  t.match(await findAnyMessage(database.reader, 'm1'), { status: 'sent', openedAt: null, clickedAt: null })
})

eachDatabase(
  t,
  'following all links right after delivery is a machine, from the first click on',
  async (t, database) => {
    await addMessages(database, 'm1', 'm2')
    const { journal, counter } = await openTracking(t, database, ownFolder(t))
    // The second that counting stays behind.
    journal.onAppend = () => {}
    const soon = NOW + 5_000
    for (const [n, url] of ['a', 'b', 'c', 'd'].entries())
      await journal.append(click('m1', `https://x.example/${url}`, { at: soon + n * 200 }))
    // A person who is quick, and one who clicks twice.
    for (const at of [soon, soon + 300, soon + 4_000])
      await journal.append(click('m2', 'https://x.example/a', { at }))
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
    const { journal, counter } = await openTracking(t, database, ownFolder(t))
    journal.onAppend = () => {}
    for (const id of ['few', 'many'])
      for (let n = 0; n < 4; n += 1)
        await journal.append(click(id, `https://x.example/${n}`, { at: NOW + 40_000 + n * 100 }))
    for (let n = 0; n < 3; n += 1)
      await journal.append(click('few', `https://x.example/${n}`, { at: NOW + 60_000 + n * 200 }))
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

eachDatabase(
  t,
  'visits recorded before a crash are counted once after it; an incomplete line is ignored',
  async (t, database) => {
    await addMessages(database, 'm1', 'm2')
    const folder = ownFolder(t)
    const before = await openTracking(t, database, folder)
    await before.journal.append(opening('m1'))
    await counts(database, 1)
    await before.counter.stop()
    t.equal(await before.journal.append(opening('m2')), true)
    await before.close()
    const [file = ''] = readdirSync(folder)
    appendFileSync(join(folder, file), '["open","m2",17')

    const after = await openTracking(t, database, folder)
    await counts(database, 2)
    t.equal(await after.journal.append(click('m2', 'https://x.example/')), true)
    await counts(database, 3)
    t.same(
      (await events(database)).map(({ kind, messageId }) => `${kind} ${messageId}`),
      ['email.opened m1', 'email.opened m2', 'email.clicked m2'],
    )
    await until('the file that was counted to be deleted', () => !readdirSync(folder).includes(file))
  },
)

eachDatabase(
  t,
  'the journal starts new files as it grows, and deleted messages do not stop counting',
  async (t, database) => {
    await addMessages(database, 'm1')
    const folder = ownFolder(t)
    const { journal } = await openTracking(t, database, folder, { fileOctets: 300 })
    for (let n = 0; n < 20; n += 1)
      await journal.append(click(n % 2 === 0 ? 'm1' : 'gone', `https://x.example/${n}`))
    await counts(database, 10)
    t.equal((await events(database)).length, 10)
    await until('files to be deleted', () => readdirSync(folder).length <= 1)
  },
)

t.test('beyond its bounds the journal drops visits and says so at once', async t => {
  const clock = new FakeClock()
  const log = new FakeLog()
  const bounds = { fileOctets: 200, files: 2, waitingUnits: 1_000 }
  const journal = await VisitJournal.open({ folder: t.testdir(), clock, log }, 0, bounds)
  t.teardown(() => journal.close())
  const atOnce = await Promise.all(Array.from({ length: 50 }, () => journal.append(opening('m1'))))
  t.ok(atOnce.includes(true) && atOnce.includes(false))
  const inTurn: boolean[] = []
  for (let n = 0; n < 20; n += 1) inTurn.push(await journal.append(opening('m1')))
  t.equal(inTurn.at(-1), false)
  t.ok(log.lines.length >= 1)
})
