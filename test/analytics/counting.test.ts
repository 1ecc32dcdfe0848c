/** What happened to mail is counted day by day, once, and told by `GET /analytics`. */
import t, { type Test } from 'tap'
import { countingConsumer } from '../../src/analytics/statistics/counting-consumer.js'
import { reportRoute } from '../../src/analytics/statistics/report-route.js'
import type { Database } from '../../src/db/database.js'
import { APPLIANCE } from '../../src/core/owner.js'
import { Dispatcher } from '../../src/events/dispatcher.js'
import type { Event } from '../../src/events/event.js'
import { appendEvents, findCursor, newestSeq } from '../../src/events/store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { serveRoutes } from '../support/api/api.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { DAY_MS, NOW } from '../support/mailroom.js'
import { until } from '../support/until.js'

const to = 'ann@x.example'
const bounce = {
  to,
  bounceType: 'permanent',
  cause: 'recipient',
  scope: 'address',
  subtype: 'no_such_mailbox',
  smtpStatus: '5.1.1',
  diagnosticCode: 'smtp; 550 5.1.1 unknown',
} as const
const visit = { to, ip: '192.0.2.1', userAgent: 'Mail', isBot: false }

type Head = Partial<Pick<Event, 'workspaceId' | 'isSandbox' | 'occurredAt'>>

function event(told: Pick<Event, 'kind' | 'payload'>, head: Head = {}): Event {
  return { workspaceId: 'w1', messageId: 'm1', isSandbox: false, occurredAt: NOW, ...head, ...told } as Event
}

const sent = (head: Head = {}): Event => event({ kind: 'email.sent', payload: { to } }, head)

async function count(database: Database, events: readonly Event[]): Promise<void> {
  await database.write(tx => appendEvents(tx, events))
  const dispatcher = new Dispatcher(
    { database, clock: new FakeClock(), random: new SeededRandom(1), log: new FakeLog() },
    [countingConsumer()],
  )
  await dispatcher.start()
  await until('everything to be counted', async () => {
    const [cursor, newest] = [
      await findCursor(database.reader, 'analytics'),
      await newestSeq(database.reader),
    ]
    return cursor === newest ? true : undefined
  })
  await dispatcher.stop()
}

interface Report {
  [total: string]: unknown
  daily_api_sends: { date: string; count: number }[]
  daily: { date: string; sends: number; delivered: number }[]
}

async function reporting(t: Test, database: Database) {
  const clock = new FakeClock()
  const api = await serveRoutes(t, [reportRoute(database.reader, clock)])
  const ask = (query = '', key = 'all') => api.ask({ path: `/api/v1/analytics${query}`, key })
  const report = async (query = '') => ((await ask(query)).json as { data: Report }).data
  return { clock, ask, report }
}

eachDatabase(
  t,
  'each thing is counted under its name, and sends are the sum of theirs',
  async (t, database) => {
    await count(database, [
      event({ kind: 'email.accepted', payload: { to } }),
      event({ kind: 'email.accepted', payload: { to } }),
      sent(),
      sent(),
      event({ kind: 'email.sent', payload: { to, campaignId: 'c1' } }),
      event({ kind: 'email.delivered', payload: { to, remoteMta: 'mx.x.example' } }),
      event({ kind: 'email.opened', payload: visit }),
      event({ kind: 'email.clicked', payload: { ...visit, url: 'https://shop.example/' } }),
      event({ kind: 'email.bounced', payload: bounce }),
      event({ kind: 'email.complained', payload: { to, feedbackType: 'abuse' } }),
    ])
    const { report } = await reporting(t, database)
    t.match(await report('?period=1d'), {
      period: '1d',
      accepted: 2,
      sends: 3,
      campaign_sends: 1,
      api_sends: 2,
      delivered: 1,
      opens: 1,
      clicks: 1,
      bounces: 1,
      complaints: 1,
      daily_api_sends: [{ date: '2026-01-05', count: 2 }],
      daily: [{ date: '2026-01-05', sends: 3, api_sends: 2, campaign_sends: 1, delivered: 1 }],
    })
  },
)

eachDatabase(t, 'what comes later is added to what was counted', async (t, database) => {
  await count(
    database,
    Array.from({ length: 250 }, () => sent()),
  )
  await count(database, [sent()])
  await count(database, [])
  const { report } = await reporting(t, database)
  t.equal((await report())['sends'], 251)
})

eachDatabase(t, 'a workspace is told of its own mail, and of no sandbox or machine', async (t, database) => {
  await count(database, [
    sent(),
    sent({ isSandbox: true, workspaceId: 'its sandbox' }),
    sent({ workspaceId: 'w2' }),
    sent({ workspaceId: APPLIANCE }),
    event({ kind: 'email.opened', payload: { ...visit, isBot: true } }),
    event({ kind: 'email.clicked', payload: { ...visit, isBot: true, url: 'https://shop.example/' } }),
  ])
  const { report } = await reporting(t, database)
  t.match(await report(), { sends: 1, opens: 0, clicks: 0 })
})

t.test('a day begins at midnight in UTC, and a period ends today', async t => {
  const database = await sqliteDatabase(t)
  const midnight = Date.UTC(2026, 0, 5)
  await count(database, [
    sent({ occurredAt: midnight }),
    sent({ occurredAt: midnight - 1 }),
    sent({ occurredAt: midnight - 6 * DAY_MS }),
    sent({ occurredAt: midnight - 6 * DAY_MS - 1 }),
    sent({ occurredAt: midnight - 89 * DAY_MS }),
    sent({ occurredAt: midnight - 89 * DAY_MS - 1 }),
  ])
  const { report, clock } = await reporting(t, database)
  const week = await report('?period=7d')
  t.equal(week['sends'], 3)
  t.same(week.daily_api_sends, [
    { date: '2025-12-30', count: 1 },
    { date: '2025-12-31', count: 0 },
    { date: '2026-01-01', count: 0 },
    { date: '2026-01-02', count: 0 },
    { date: '2026-01-03', count: 0 },
    { date: '2026-01-04', count: 1 },
    { date: '2026-01-05', count: 1 },
  ])
  t.equal((await report('?period=90d'))['sends'], 5)
  t.equal((await report('?period=90d')).daily.length, 90)
  await clock.advance(DAY_MS)
  t.match(await report('?period=1d'), { sends: 0, daily: [{ date: '2026-01-06', sends: 0 }] })
})

t.test('without a period it is 30 days; any other is refused', async t => {
  const { report, ask } = await reporting(t, await sqliteDatabase(t))
  t.match(await report(), { period: '30d', sends: 0 })
  t.equal((await report()).daily.length, 30)
  for (const query of ['?period=91d', '?period=', '?period=7D', '?period=7d&period=1d', '?since=7d'])
    t.match(await ask(query), { status: 400, json: { error: { code: 'validation_error' } } }, query)
})

t.test('it needs analytics:read', async t => {
  const { ask } = await reporting(t, await sqliteDatabase(t))
  t.match(await ask('', 'reader'), { status: 403, json: { error: { code: 'forbidden' } } })
})
