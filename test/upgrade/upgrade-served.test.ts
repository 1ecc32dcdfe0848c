/**
 * An installation of the oldest version that is upgraded, killed in the middle of its work: this version goes on with it, and nothing is lost
 * or done twice. `write-old-installations.ts` tells what is in it. Some five seconds.
 */
import t, { type Test } from 'tap'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'
import { Settings } from '../../src/config/settings.js'
import { openServer } from '../../src/server.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { systemWorld } from '../../src/world/world.js'
import { clientOf } from '../support/api/client.js'
import { POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'
import { installOld } from './install-old.js'
import { readFacts } from './old-installation.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const onPostgres = POSTGRES_SERVER !== undefined
const facts = readFacts(onPostgres ? 'postgres' : 'sqlite')

/** The old installation with this version's server, a minute after the old one was killed. Mail is put off until `sink.atRcpt` changes. */
async function upgraded(t: Test) {
  const sink = await openSink(t)
  sink.atRcpt = 'defer'
  const env = {
    ...routeTo(sink.port),
    POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8',
    POSTROAD_MTA_RETRY_FIRST: '15m',
  }
  const { configFile, environment } = installOld(t, env)
  const settings = new Settings({ schema: CONFIG_SCHEMA, file: configFile, env: environment })
  const clock = new FakeClock(Date.parse(facts.at) + MINUTE_MS)
  const world = { ...systemWorld(), clock, log: new FakeLog() }
  const server = await openServer(settings.started.config, world, settings)
  t.teardown(() => server[Symbol.asyncDispose]())
  const client = clientOf(`http://127.0.0.1:${server.addresses.http[0]?.port ?? 0}`)
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- compared with what is expected
  const read = async (path: string): Promise<any> => {
    const { status, body } = await client.get(`/api/v1${path}`, { key: facts.key })
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
    return body
  }
  return { client, sink, clock, read }
}

t.test('everything the old version showed is shown by this one, and its keys and links work', async t => {
  const { read, client } = await upgraded(t)
  for (const [path, old] of Object.entries(facts.answers))
    t.same(lacking(old, await read(path)), [], `${path} shows what it showed`)

  const me = await client.get('/api/admin/v1/me', { key: facts.operatorToken })
  t.match(me, { status: 200, body: { data: { email: 'ann@operators.test' } } })
  t.ok(facts.lastMail.links.length >= 3, 'a click, an open and a way to unsubscribe')
  for (const { path } of facts.lastMail.links) {
    const { status } = await fetch(client.baseUrl + path, { redirect: 'manual' })
    t.ok([200, 302].includes(status), `${status} for ${path}`)
  }
  t.match(await client.get('/api/v1/health'), { status: 200, body: { data: { ready: true } } })
})

t.test('what was under way goes on, and everybody gets each mail once', async t => {
  const { read, clock, sink } = await upgraded(t)
  sink.atRcpt = 'accept'
  const arrived = () => sink.accepted.map(({ raw, recipients: [to = ''] }) => `${to} ${subjectOf(raw)}`)
  const hours = async (count: number, what: string, isDone: () => boolean | Promise<boolean>) => {
    for (let hour = 0; hour < count && !(await isDone()); hour += 1) {
      clock.skip(HOUR_MS)
      await clock.advance(5_000)
      await settled(() => sink.accepted.length)
    }
    await until(what, async () => {
      await clock.advance(1_000)
      return isDone()
    })
  }

  const campaign = async (name: string) =>
    ((await read('/campaigns')).data as { name: string; status: string }[]).find(one => one.name === name)
  await hours(
    8,
    'the campaign that was half sent',
    async () => (await campaign('Half'))?.status === 'completed',
  )
  const half = [...facts.delivered, ...arrived()].filter(mail => / Half for /.test(mail))
  t.equal(half.length, facts.campaign.recipients, 'all of its recipients')

  await hours(
    26,
    'the campaign of the next day',
    async () => (await campaign('Scheduled'))?.status === 'completed',
  )
  await hours(4, 'the mail of the next day', () => arrived().includes('tomorrow@d4.test To tomorrow@d4.test'))
  for (const to of ['later@d0.test', 'later@d4.test', 'full@d3.test'])
    t.ok(arrived().includes(`${to} To ${to}`), `${to} was deferred, and has its mail now`)

  await hours(4, 'the runs that waited for a day', async () => {
    const { data } = await read(`/automations/${facts.automation}`)
    return data.stats.completed === 5
  })
  const [welcomed] = ((await read('/tags')).data as { name: string; contact_count: number }[]).filter(
    ({ name }) => name === 'welcomed',
  )
  t.equal(welcomed?.contact_count, 5)

  const all = [...facts.delivered, ...arrived()]
  t.same(
    all.filter((mail, at) => all.indexOf(mail) !== at),
    [],
    'nobody has a mail twice',
  )
})

t.test('deliveries of webhooks that were to be tried again are tried again', async t => {
  const { read, clock } = await upgraded(t)
  const hooks = (await read('/webhooks/triggers')).data as { id: string; targetUrl: string }[]
  const { id = '' } = hooks.find(({ targetUrl }) => targetUrl.endsWith('/fails')) ?? {}
  const tried = async () =>
    ((await read(`/webhooks/${id}/deliveries?limit=100`)).data as { attempts: unknown[] }[]).reduce(
      (sum, { attempts }) => sum + attempts.length,
      0,
    )
  const before = await tried()
  t.ok(before > 0, `${before} attempts so far`)
  clock.skip(HOUR_MS)
  await until('another attempt', async () => {
    await clock.advance(1_000)
    return (await tried()) > before
  })
})

function subjectOf(raw: Buffer): string {
  return /^Subject: (.*)$/m.exec(raw.toString('latin1'))?.[1]?.trim() ?? ''
}

/** Until a number has stayed the same for a while of the machine's time. */
async function settled(count: () => number): Promise<void> {
  let last = -1
  await until('mail to come to rest', async () => {
    const now = count()
    await new Promise(resolve => setTimeout(resolve, 50))
    const isSame = now === last
    last = now
    return isSame
  })
}

/** What goes on while it is looked at: pages of longer lists, and deliveries of webhooks to which nobody listens any more. */
const VOLATILE = new Set(['pagination', 'failingSince'])

/** What an answer of the old version showed and this one does not, by path. Lists are compared by the ids of what is in them. */
function lacking(old: unknown, now: unknown, path = ''): string[] {
  if (Array.isArray(old)) {
    if (!Array.isArray(now)) return [path]
    return old.flatMap((item: unknown, at) => {
      const id = idOf(item)
      const found: unknown = id === undefined ? now[at] : now.find(other => idOf(other) === id)
      return lacking(item, found, `${path}/${id ?? at}`)
    })
  }
  if (typeof old === 'object' && old !== null) {
    if (typeof now !== 'object' || now === null) return [path]
    return Object.entries(old)
      .filter(([name]) => !VOLATILE.has(name))
      .flatMap(([name, value]) => lacking(value, (now as Record<string, unknown>)[name], `${path}/${name}`))
  }
  return old === now ? [] : [`${path}: ${JSON.stringify(old)} is ${JSON.stringify(now)} now`]
}

function idOf(item: unknown): string | undefined {
  const { id } = (item ?? {}) as { id?: unknown }
  return typeof id === 'string' ? id : undefined
}
