/** `GET /analytics` on the running appliance: what was sent is counted by day, for its own workspace, without the sandbox. */
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'
import { openServer } from '../../src/server.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemWorld } from '../../src/world/world.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { clientOf, type Client } from '../support/api/client.js'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const DAY = 86_400_000
const START = Date.parse('2026-01-05T10:00:00Z')

/** Sends one mail to each, and resolves once so many were counted today under the name. */
async function sendTo(client: Client, key: string, to: readonly string[], name: string, count: number) {
  await client.send(key, { ...good, to })
  await until(`${count} ${name}`, async () => {
    const { body } = await client.get('/api/v1/analytics?period=1d', { key })
    return body.data[name] === count
  })
}

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const ask = (query = '', asker = key) => postroad.get(`/api/v1/analytics${query}`, { key: asker })
  const report = async (query = '', asker = key) => (await ask(query, asker)).body.data
  return { ...postroad, ask, report }
}

/** One data folder and its servers of several days: a clock that is turned so far would take its time. */
async function openDays(t: Test, env: Readonly<Record<string, string>>) {
  const installation = await initialise(t, { env })
  const { key } = installation
  const { config } = loadConfig({
    schema: CONFIG_SCHEMA,
    file: installation.configFile,
    env: installation.environment,
  })
  return {
    key,
    report: async (client: Client, query: string) =>
      (await client.get(`/api/v1/analytics${query}`, { key })).body.data,
    /** Starts the server that many days later for one request. */
    onDay: async (day: number, ask: (client: Client) => Promise<void>) => {
      const clock = new FakeClock(START + day * DAY)
      await using server = await openServer(config, { ...systemWorld(), clock, log: new FakeLog() })
      await ask(clientOf(`http://127.0.0.1:${server.addresses.http[0]?.port ?? 0}`))
    },
  }
}

// proves: Other resources > Analytics totals sends campaign_sends api_sends
// proves: decisions: Deliverability > Analytics {totals daily_api_sends [{date "YYYY-MM-DD"
t.test('accepted, sent, delivered and bounced mail is counted on its day', async t => {
  const sink = await openSink(t)
  const { onDay, report, key } = await openDays(t, routeTo(sink.port))
  await onDay(0, async client => {
    await sendTo(client, key, ['ann@one.test', 'bob@one.test'], 'delivered', 2)
    await sendTo(client, key, ['unknown@one.test'], 'bounces', 1)
    const totals = {
      sends: 3,
      api_sends: 3,
      campaign_sends: 0,
      delivered: 2,
      bounces: 1,
      opens: 0,
      clicks: 0,
    }
    t.match(await report(client, '?period=1d'), {
      period: '1d',
      accepted: 3,
      ...totals,
      daily_api_sends: [{ date: '2026-01-05', count: 3 }],
      daily: [{ date: '2026-01-05', ...totals }],
    })
  })
  await onDay(1, async client => {
    await sendTo(client, key, ['ann@one.test'], 'delivered', 1)
    t.match(await report(client, '?period=1d'), { sends: 1, delivered: 1, bounces: 0 })
    const week = await report(client, '?period=7d')
    t.match(week, { sends: 4, delivered: 3, bounces: 1 })
    t.same(week.daily_api_sends.slice(-3), [
      { date: '2026-01-04', count: 0 },
      { date: '2026-01-05', count: 3 },
      { date: '2026-01-06', count: 1 },
    ])
  })
})

// proves: Deliverability, domains, analytics, tracking > GET /analytics
// at and past limit: Limits > Analytics period
t.test('a period is 1, 7, 30 or 90 days, 30 by default', async t => {
  const { ask, report } = await open(t)
  for (const [query, days] of [
    ['?period=1d', 1],
    ['?period=7d', 7],
    ['?period=30d', 30],
    ['?period=90d', 90],
    ['', 30],
  ] as const) {
    const { daily, daily_api_sends: series } = await report(query)
    t.same([daily.length, series.length], [days, days], query)
    t.match(series.at(-1), { date: '2026-01-05', count: 0 }, 'it ends today')
  }
  for (const period of ['91d', '0d', '2d', '365d', '', '7', '7D', '90d&period=1d'])
    t.match(
      await ask(`?period=${period}`),
      { status: 400, body: { error: { code: 'validation_error', path: 'period' } } },
      period,
    )
})

// proves: Deliverability, domains, analytics, tracking > GET /analytics
// at and past limit: Limits > Analytics period
t.test('mail sent more than 90 days ago is not counted', async t => {
  const { onDay, report, key } = await openDays(t, { POSTROAD_MTA_CAPTURE: 'true' })
  await onDay(0, client => sendTo(client, key, ['ann@one.test'], 'delivered', 1))
  await onDay(89, async client => {
    const found = await report(client, '?period=90d')
    t.match(found, { sends: 1, daily_api_sends: [{ date: '2026-01-05', count: 1 }] })
  })
  await onDay(90, async client => {
    const found = await report(client, '?period=90d')
    t.match(found, { sends: 0, daily_api_sends: [{ date: '2026-01-06', count: 0 }] })
  })
})

// proves: Other resources > Analytics totals sends campaign_sends api_sends
// proves: decisions: Deliverability > Analytics {totals daily_api_sends [{date "YYYY-MM-DD"
t.test('neither the sandbox nor other workspaces are counted; the sandbox has separate counters', async t => {
  const { report, key, ...postroad } = await open(t)
  const sandbox = await postroad.makeKey('--sandbox')
  for (const name of ['delivered', 'opened', 'clicked', 'bounced'])
    await postroad.send(sandbox, { ...good, to: `${name}@simulator.test` })
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', id)
  await postroad.send(stranger, { ...good, to: 'ann@one.test' })
  await until('the other one to be counted', async () => (await report('', stranger)).delivered === 1)
  // What came after the others was counted after them.
  await sendTo(postroad, key, ['bob@one.test'], 'delivered', 1)
  const none = { opens: 0, clicks: 0, bounces: 0 }
  t.match(await report(), { accepted: 1, sends: 1, delivered: 1, ...none })
  const played = { accepted: 4, sends: 4, delivered: 3, opens: 2, clicks: 1, bounces: 1 }
  t.match(await report('', sandbox), played)
  t.match(await report('', stranger), { accepted: 1, sends: 1, delivered: 1, ...none })
})

// proves: Deliverability, domains, analytics, tracking > GET /analytics
t.test('a report can be filtered or grouped by tag, sender domain and campaign', async t => {
  const { report, key, ...postroad } = await open(t)
  await postroad.send(key, { ...good, to: ['ann@one.test', 'bob@one.test'], tags: ['receipt'] })
  await postroad.send(key, { ...good, from_email: 'me@other.test', to: 'cid@one.test' })
  await until('all to be counted', async () => (await report('?period=1d')).delivered === 3)
  const mailed = { accepted: 2, sends: 2, delivered: 2 }
  t.match(await report('?tag=receipt'), mailed)
  // Neither domain was added here: the mails are from the shared address.
  t.match(await report('?domain=Mail.Postroad.test'), { sends: 3 })
  t.match(await report('?domain=sender.test'), { sends: 0 })
  t.match((await report('?group_by=tag')).groups, [{ value: 'receipt', ...mailed }])
  t.match((await report('?group_by=domain')).groups, [{ value: 'mail.postroad.test', sends: 3 }])
  t.match(await report('?campaign_id=0192f000-0000-7000-8000-00000000abcd'), { sends: 0 })
})
