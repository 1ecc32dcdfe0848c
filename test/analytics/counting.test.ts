/** What happened to mail is counted day by day, once, and told by `GET /analytics`. */
import t, { type Test } from 'tap'
import { countingConsumer } from '../../src/analytics/statistics/counting-consumer.js'
import {
  addToCounters,
  addToGroups,
  deleteGroupsBefore,
  MAX_VALUES,
  readClientOpens,
} from '../../src/analytics/statistics/counter-store.js'
import { reportRoute } from '../../src/analytics/statistics/report-route.js'
import type { Database } from '../../src/db/database.js'
import { APPLIANCE } from '../../src/core/owner.js'
import { Dispatcher } from '../../src/events/dispatcher.js'
import type { Event } from '../../src/events/event.js'
import { appendEvents, findCursor, newestSeq } from '../../src/events/store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
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
  const dispatcher = new Dispatcher({ database, clock: new FakeClock(), log: new FakeLog() }, [
    countingConsumer(),
  ])
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

async function reporting(t: Test, database: Database, now = NOW) {
  const clock = new FakeClock(now)
  const api = await serveRoutes(t, [reportRoute(database, clock)])
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

eachDatabase(t, 'opens by people are counted by the mail client they were read in', async (t, database) => {
  const opened = (more: object) => event({ kind: 'email.opened', payload: { ...visit, ...more } })
  const gmail = 'Mozilla/5.0 (via ggpht.com GoogleImageProxy)'
  await count(database, [
    opened({ userAgent: gmail }),
    opened({ userAgent: gmail }),
    opened({ userAgent: 'Outlook-iOS/723' }),
    opened({}),
    opened({ userAgent: gmail, isBot: true }),
    opened({ userAgent: 'Mozilla/5.0 (X11) Firefox/140.0', isInferred: true }),
  ])
  t.same(Object.fromEntries(await readClientOpens(database.reader, 'w1', NOW - DAY_MS)), {
    gmail: 2,
    'outlook-mobile': 1,
    other: 1,
  })
  t.equal((await readClientOpens(database.reader, 'w1', NOW)).size, 0)
})

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

eachDatabase(
  t,
  "a report counts only the workspace's own live mail, and no machine visits",
  async (t, database) => {
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
  },
)

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
  for (const query of [
    '?period=91d',
    '?period=',
    '?period=7D',
    '?period=7d&period=1d',
    '?since=7d',
    '?period=7d&until=2026-01-05',
  ])
    t.match(await ask(query), { status: 400, json: { error: { code: 'validation_error' } } }, query)
})

t.test('reports require analytics:read', async t => {
  const { ask } = await reporting(t, await sqliteDatabase(t))
  t.match(await ask('', 'reader'), { status: 403, json: { error: { code: 'forbidden' } } })
})

const tagged = (payload: object, head: Head = {}): Event =>
  event({ kind: 'email.sent', payload: { to, ...payload } }, head)

eachDatabase(
  t,
  'mail is counted by campaign, by each of its tags, and by the sender domain',
  async (t, database) => {
    const receipt = { tags: ['receipt', 'eu shop'], senderDomain: 'shop.example' }
    await count(database, [
      event({ kind: 'email.accepted', payload: { to, ...receipt } }),
      tagged(receipt),
      event({ kind: 'email.opened', payload: { ...visit, ...receipt } }),
      event({ kind: 'email.opened', payload: { ...visit, ...receipt, isBot: true } }),
      tagged({ tags: ['receipt'], senderDomain: 'other.example' }, { occurredAt: NOW - DAY_MS }),
      tagged({ campaignId: 'c1', senderDomain: 'shop.example' }),
      tagged({ campaignId: 'c1', senderDomain: 'shop.example' }, { workspaceId: 'w2' }),
      tagged({ senderDomain: 'postroad.example' }, { workspaceId: APPLIANCE }),
      sent(),
    ])
    await count(database, [tagged(receipt)])
    const { report } = await reporting(t, database)
    t.match(await report('?tag=receipt'), {
      ...{ accepted: 1, sends: 3, api_sends: 3, campaign_sends: 0, opens: 1 },
      daily_api_sends: { '28': { date: '2026-01-04', count: 1 }, '29': { date: '2026-01-05', count: 2 } },
    })
    t.match(await report('?tag=eu%20shop&period=1d'), { sends: 2, opens: 1, daily: [{ sends: 2 }] })
    t.match(await report('?campaign_id=C1'), { sends: 1, campaign_sends: 1, api_sends: 0 })
    t.match(await report('?domain=Shop.Example'), { sends: 3, campaign_sends: 1, api_sends: 2 })
    t.match(await report('?tag=unknown'), { sends: 0, daily: { length: 30 } })
    t.match(await report('?domain=postroad.example'), { sends: 0 })
    t.equal((await report())['groups'], undefined)
    const byTag = await report('?group_by=tag')
    t.equal(byTag['sends'], 5, 'the totals are those of all mail')
    t.match(byTag['groups'], [
      { value: 'receipt', sends: 3, opens: 1 },
      { value: 'eu shop', sends: 2 },
    ])
    t.match((await report('?group_by=domain&period=1d'))['groups'], [{ value: 'shop.example', sends: 3 }])
    t.match((await report('?group_by=campaign'))['groups'], [{ value: 'c1', sends: 1, campaign_sends: 1 }])
  },
)

/** As a calendar of that place shows it, e.g. `2026-03-29`. */
function dayIn(timeZone: string, at: number): string {
  const calendar = calendars.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone })
  calendars.set(timeZone, calendar)
  return calendar.format(at)
}
const calendars = new Map<string, Intl.DateTimeFormat>()

eachDatabase(t, 'with a time zone, days are what a calendar there shows', async (t, database) => {
  // Clocks in Berlin go forward on 29 March 2026.
  const [first, now] = [Date.parse('2026-03-24T00:00:00Z'), Date.parse('2026-03-31T23:40:00Z')]
  const random = new SeededRandom(20260329)
  const moments = Array.from({ length: 400 }, () => Math.floor(first + random.fraction() * (now - first)))
  const tagOf = (at: number) => (at % 3 === 0 ? 'a' : 'b')
  await count(
    database,
    moments.map(occurredAt => tagged({ tags: [tagOf(occurredAt)] }, { occurredAt })),
  )
  const { report } = await reporting(t, database, now)
  for (const timezone of [
    ...['Pacific/Kiritimati', 'Pacific/Honolulu', 'Europe/Berlin', 'Asia/Kathmandu', 'America/St_Johns'],
    ...['Australia/Lord_Howe', 'UTC'],
  ]) {
    const today = dayIn(timezone, now)
    const dates = Array.from({ length: 5 }, (_, at) =>
      new Date(Date.parse(today) - (4 - at) * DAY_MS).toISOString().slice(0, 10),
    )
    const named = `timezone=${encodeURIComponent(timezone)}`
    const query = `?${named}&since=${dates[0]}&until=${today}`
    const on = (date: string, isMeant: (at: number) => boolean = () => true) =>
      moments.filter(at => dayIn(timezone, at) === date && isMeant(at)).length
    const whole = await report(query)
    t.match(whole, { since: dates[0], until: today, timezone })
    const daily = (found: Report) => found.daily.map(({ date, sends }) => [date, sends])
    t.same(
      daily(whole),
      dates.map(date => [date, on(date)]),
      timezone,
    )
    t.equal(whole['sends'], moments.filter(at => dates.includes(dayIn(timezone, at))).length, timezone)
    t.same(
      daily(await report(`${query}&tag=a`)),
      dates.map(date => [date, on(date, at => tagOf(at) === 'a')]),
      `${timezone}, a tag`,
    )
    const groups = (await report(`${query}&group_by=tag`))['groups'] as { value: string; sends: number }[]
    const wanted = ['a', 'b'].map(tag => ({
      value: tag,
      sends: dates.reduce((sum, date) => sum + on(date, at => tagOf(at) === tag), 0),
    }))
    t.match(
      groups.sort(({ value: one }, { value: other }) => (one < other ? -1 : 1)),
      wanted,
      timezone,
    )
    t.match(await report(`?${named}&period=1d`), { since: today, until: today, sends: on(today) })
    const since = new Date(moments[0]!).toISOString()
    t.match(await report(`?${named}&since=${since}`), { since: dayIn(timezone, moments[0]!) }, 'a moment')
  }
})

eachDatabase(t, 'what was counted by day only stays on its date in every time zone', async (t, database) => {
  const day = Date.UTC(2026, 0, 4)
  await database.write(tx => addToCounters(tx.db, [{ workspaceId: 'w1', day, name: 'api_sends', count: 5 }]))
  await database.write(tx =>
    addToGroups(tx.db, [{ workspaceId: 'w1', day, dimension: 'tag', value: 'a', counts: { api_sends: 5 } }]),
  )
  // The upgrade was within that day.
  await count(database, [tagged({ tags: ['a'] }, { occurredAt: day + DAY_MS - 1 })])
  const { report } = await reporting(t, database)
  for (const [timezone, before, after] of [
    ['Pacific/Honolulu', 6, 0],
    ['Europe/Berlin', 5, 1],
  ] as const)
    for (const filter of ['', '&tag=a', '&group_by=tag']) {
      const found = await report(`?timezone=${timezone}&since=2026-01-04&until=2026-01-05${filter}`)
      const daily = [
        { date: '2026-01-04', sends: before },
        { date: '2026-01-05', sends: after },
      ]
      t.match(found, { daily, sends: 6 }, `${timezone} ${filter}`)
      if (filter === '&group_by=tag') t.match(found['groups'], [{ value: 'a', sends: 6 }])
    }
})

t.test('a time zone that does not exist is refused', async t => {
  const { ask } = await reporting(t, await sqliteDatabase(t))
  for (const timezone of ['Nowhere/Land', '', 'x'.repeat(65)])
    t.match(
      await ask(`?timezone=${timezone}`),
      { status: 400, json: { error: { code: 'validation_error', path: 'timezone' } } },
      timezone,
    )
})

eachDatabase(t, 'values beyond the limit of a day are counted together', async (t, database) => {
  const of = (first: number, values: number) =>
    Array.from({ length: values }, (_, at) => tagged({ tags: [`order ${first + at}`] }))
  await count(database, of(0, MAX_VALUES - 1))
  await count(database, of(1_000, 3))
  await count(database, [...of(0, 2), ...of(2_000, 2)])
  const { report } = await reporting(t, database)
  t.match(await report('?tag=order%200'), { sends: 2 }, 'known values keep counting')
  t.match(await report('?tag=order%201000'), { sends: 1 }, 'the last one with room')
  t.match(await report('?tag=order%201001'), { sends: 0 })
  const groups = (await report('?group_by=tag'))['groups'] as { value: string | null; sends: number }[]
  t.equal(groups.length, 101)
  t.match(groups[0], { value: 'order 0', sends: 2 })
  t.match(groups.at(-1), { value: null, sends: MAX_VALUES + 6 - 102 })
  const rows = await database.reader.selectFrom('daily_group_counters').select('value').execute()
  t.equal(rows.length, MAX_VALUES + 1)
  const elsewhere = await report('?group_by=tag&timezone=Asia/Kathmandu')
  t.same(elsewhere['groups'], groups, 'and so they are in another time zone')
  t.equal(await database.write(({ db }) => deleteGroupsBefore(db, NOW + DAY_MS, 400)), 400)
  t.equal(await database.write(({ db }) => deleteGroupsBefore(db, NOW + DAY_MS, 400)), 101)
  // Two tags that a database keeps as one.
  await count(database, [tagged({ tags: ['\ud800', '\ud801'] })])
  t.match((await report('?group_by=tag'))['groups'], [{ value: '\ufffd', sends: 1 }])
})

t.test('a report covers the requested days, at most 90', async t => {
  const database = await sqliteDatabase(t)
  await count(database, [
    sent({ occurredAt: NOW - 100 * DAY_MS }),
    sent({ occurredAt: NOW - 2 * DAY_MS }),
    sent({ occurredAt: NOW - DAY_MS }),
    sent(),
  ])
  const { report, ask } = await reporting(t, database)
  for (const [query, since, until, sends] of [
    ['?since=2026-01-04', '2026-01-04', '2026-01-05', 2],
    ['?since=2026-01-03&until=2026-01-04', '2026-01-03', '2026-01-04', 2],
    ['?since=2026-01-04T23:00:00Z&until=2026-01-05T00:00:00Z', '2026-01-04', '2026-01-04', 1],
    ['?until=2026-01-04', '2025-12-06', '2026-01-04', 2],
    ['?since=2025-09-20&until=2025-10-01', '2025-09-20', '2025-10-01', 1],
    ['?since=2026-01-05&until=2026-12-31', '2026-01-05', '2026-01-05', 1],
    ['?since=2025-10-08', '2025-10-08', '2026-01-05', 3],
  ] as const) {
    const found = await report(query)
    t.match(found, { period: 'custom', since, until, sends }, query)
    t.match([found.daily[0], found.daily.at(-1)], [{ date: since }, { date: until }], query)
  }
  t.match(await report('?period=7d'), { period: '7d', since: '2025-12-30', until: '2026-01-05' })
  for (const [query, path] of [
    ['?since=2025-10-07', 'since'],
    ['?since=2026-01-06', 'since'],
    ['?since=2026-01-04&until=2026-01-03', 'until'],
    ['?since=yesterday', 'since'],
    ['?period=7d&since=2026-01-04', 'period'],
    ['?tag=a&domain=b', 'domain'],
    ['?campaign_id=c&tag=a', 'tag'],
    ['?tag=a&group_by=tag', 'group_by'],
    ['?group_by=day', 'group_by'],
  ] as const)
    t.match(await ask(query), { status: 400, json: { error: { code: 'validation_error', path } } }, query)
})
