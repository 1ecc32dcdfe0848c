/** Automatic rechecks of domains: how often, and their effects. */
import t from 'tap'
import { getEventListeners } from 'node:events'
import { SHELL } from '../../src/core/actor.js'
import type { Database } from '../../src/db/database.js'
import { findDomain, type Domain } from '../../src/deliverability/domains/domain-store.js'
import { addDomain, deleteDomain, verifyDomain } from '../../src/deliverability/domains/domains.js'
import { recheckDomains } from '../../src/deliverability/domains/recheck-domains.js'
import { listActivities } from '../../src/events/activity-store.js'
import type { Resolver } from '../../src/world/dns/dns.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { domainOffice, publish } from '../support/domains.js'
import { endPostgres } from '../support/db/postgres.js'
import { comeToRest } from '../support/turns.js'
import { until } from '../support/until.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

function openOffice(database: Database, resolver?: (zone: FakeZone) => Resolver) {
  const office = domainOffice(database)
  const { clock, zone } = office
  let asked = 0
  const parts = {
    ...office.parts,
    freshResolver: () => {
      asked += 1
      return (resolver ?? fakeDns)(zone)
    },
  }
  const log = new FakeLog()
  const stopping = new AbortController()
  const find = async (id: string): Promise<Domain> => {
    const domain = await findDomain(database.reader, 'w1', id)
    if (!domain) throw new Error('no such domain')
    return domain
  }
  return {
    ...office,
    parts,
    log,
    find,
    stopping,
    recheck: () => recheckDomains({ ...parts, log }, stopping.signal),
    /** Looks every five minutes, through many days every hour. @returns how often DNS was asked */
    pass: async (ms: number): Promise<number> => {
      const before = asked
      const stepMs = ms > 2 * DAY_MS ? HOUR_MS : 5 * MINUTE_MS
      for (let passed = 0; passed < ms; passed += stepMs) {
        clock.jump(stepMs)
        await recheckDomains({ ...parts, log }, stopping.signal)
      }
      return asked - before
    },
    activities: async () =>
      (await listActivities(database.reader, { workspaceId: 'w1' }, { limit: 10, offset: 0 })).items.map(
        ({ actor, action }) => `${actor.type} ${action}`,
      ),
  }
}

const unpublish = (zone: FakeZone) => {
  for (const name of Object.keys(zone)) Reflect.deleteProperty(zone, name)
}
const silence = (zone: FakeZone) => {
  for (const name of Object.keys(zone)) zone[name] = 'servfail'
}

eachDatabase(
  t,
  'a domain is verified within minutes after its records are published',
  async (t, database) => {
    const { parts, zone, find, pass, log, activities } = openOffice(database)
    const added = await addDomain(parts, 'w1', 'example.com', SHELL)
    await pass(20 * MINUTE_MS)
    t.match(await find(added.id), { verifiedAt: null, failingSince: null })
    publish(zone, added)
    await pass(10 * MINUTE_MS)
    t.ok((await find(added.id)).verifiedAt)
    t.match(log.lines, [
      { level: 'info', event: 'domain verified', fields: { domain: 'example.com', workspaceId: 'w1' } },
    ])
    t.same(await activities(), ['system domain.verified', 'shell domain.added'])
  },
)

t.test('an unverified domain is checked less often the longer it waits', async t => {
  const { parts, pass } = openOffice(await sqliteDatabase(t))
  const { id } = await addDomain(parts, 'w1', 'example.com', SHELL)
  const within = async (what: string, ms: number, least: number, most: number) => {
    const asked = await pass(ms)
    t.ok(asked >= least && asked <= most, `${what}: ${asked} times`)
  }
  await within('in the first hour', HOUR_MS, 10, 13)
  await within('in the rest of the day', 23 * HOUR_MS, 23, 26)
  await within('in the rest of the week', 6 * DAY_MS, 23, 28)
  await within('in the month after it', 30 * DAY_MS, 29, 34)
  await verifyDomain(parts, 'w1', id, SHELL)
  await within('in the hour after a request', HOUR_MS, 10, 13)
})

t.test('a verified domain is checked daily and stays verified', async t => {
  const database = await sqliteDatabase(t)
  const { parts, zone, find, pass, log } = openOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  const { verifiedAt } = await verifyDomain(parts, 'w1', added.id, SHELL)
  const asked = await pass(10 * DAY_MS)
  t.ok(asked >= 10 && asked <= 12, `${asked} times`)
  t.match(await find(added.id), { verifiedAt, failingSince: null })
  t.same(log.lines, [])
})

eachDatabase(t, 'a verified domain without its records can send for three more days', async (t, database) => {
  const { parts, zone, find, pass, log, activities } = openOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  const { verifiedAt } = await verifyDomain(parts, 'w1', added.id, SHELL)
  unpublish(zone)
  await pass(DAY_MS)
  const failing = await find(added.id)
  t.equal(failing.verifiedAt, verifiedAt)
  t.ok(failing.failingSince)
  t.match(log.lines, [
    {
      level: 'warn',
      event: 'domain records failed',
      fields: { domain: 'example.com', wrong: /_postroad\.example\.com/ },
    },
  ])
  await pass(3 * DAY_MS - 2 * HOUR_MS)
  t.equal((await find(added.id)).verifiedAt, verifiedAt)
  await pass(8 * HOUR_MS)
  t.match(await find(added.id), { verifiedAt: null, failingSince: null, watchedSince: Number })
  t.match(log.lines.at(-1), { level: 'warn', event: 'domain verification lost' })
  t.equal((await activities())[0], 'system domain.unverified')
  publish(zone, added)
  await pass(HOUR_MS)
  t.ok((await find(added.id)).verifiedAt, 'and is verified again soon after they are back')
})

t.test('records restored in time leave no trace', async t => {
  const database = await sqliteDatabase(t)
  const { parts, zone, find, pass, log } = openOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  const { verifiedAt } = await verifyDomain(parts, 'w1', added.id, SHELL)
  for (let round = 0; round < 3; round += 1) {
    unpublish(zone)
    await pass(2 * DAY_MS + 12 * HOUR_MS)
    t.ok((await find(added.id)).failingSince)
    publish(zone, added)
    await pass(7 * HOUR_MS)
    t.match(await find(added.id), { verifiedAt, failingSince: null, failedChecks: 0 })
  }
  t.equal(log.lines.at(-1)?.event, 'domain records restored')
})

t.test('two failed checks days apart do not end a verification', async t => {
  const database = await sqliteDatabase(t)
  const { parts, zone, clock, find, recheck } = openOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  await verifyDomain(parts, 'w1', added.id, SHELL)
  unpublish(zone)
  for (const isVerified of [true, true, false]) {
    clock.jump(5 * DAY_MS)
    await recheck()
    t.equal((await find(added.id)).verifiedAt !== null, isVerified)
  }
})

t.test('silent name servers change nothing, even for weeks', async t => {
  const database = await sqliteDatabase(t)
  const { parts, zone, find, pass, log } = openOffice(database)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added, 'CNAME', 'all')
  const { verifiedAt, findings } = await verifyDomain(parts, 'w1', added.id, SHELL)
  silence(zone)
  await pass(21 * DAY_MS)
  const after = await find(added.id)
  t.match(after, { verifiedAt, failingSince: null })
  t.same(
    Object.values(after.findings).filter(({ status }) => status === 'verified').length,
    Object.values(findings).filter(({ status }) => status === 'verified').length,
    'Ed25519 signs on as well',
  )
  t.same(log.lines, [])
})

eachDatabase(t, 'vouched and removed domains are never checked', async (t, database) => {
  const { parts, pass } = openOffice(database)
  await addDomain(parts, 'w1', 'printer.lan', SHELL, 'vouched')
  const { id } = await addDomain(parts, 'w1', 'example.com', SHELL)
  await deleteDomain(parts, 'w1', id, SHELL)
  t.equal(await pass(2 * DAY_MS), 0)
})

t.test('a domain that cannot be checked does not delay others', async t => {
  const { parts, zone, find, pass, log } = openOffice(await sqliteDatabase(t), zone => {
    const dns = fakeDns(zone)
    return {
      ...dns,
      txt: name => (name.endsWith('.broken.test') ? Promise.reject(new Error('no sockets')) : dns.txt(name)),
    }
  })
  await addDomain(parts, 'w1', 'a.broken.test', SHELL)
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  publish(zone, added)
  await pass(10 * MINUTE_MS)
  t.ok((await find(added.id)).verifiedAt)
  t.match(log.lines[0], {
    level: 'error',
    event: 'domain check failed',
    fields: { domain: 'a.broken.test', error: 'no sockets' },
  })
})

t.test('a finished check leaves no shutdown listener', async t => {
  const { recheck, stopping } = openOffice(await sqliteDatabase(t), fakeDns)
  for (let minute = 0; minute < 20; minute++) await recheck()
  t.equal(getEventListeners(stopping.signal, 'abort').length, 0)
})

t.test('a shutdown does not wait for DNS, and late answers change nothing', async t => {
  // That of the tests above has a timer of its own, with which nothing comes to rest.
  await endPostgres()
  let answer = (): void => {}
  const { parts, clock, find, recheck, stopping } = openOffice(await sqliteDatabase(t), zone => ({
    ...fakeDns(zone),
    txt: () =>
      new Promise(resolve => (answer = () => resolve({ kind: 'missing', why: 'nxdomain', ttlSeconds: 1 }))),
  }))
  const added = await addDomain(parts, 'w1', 'example.com', SHELL)
  clock.jump(HOUR_MS)
  const running = recheck()
  await comeToRest()
  stopping.abort()
  await running
  answer()
  await comeToRest()
  t.equal((await find(added.id)).checkedAt, null)
})

t.test(
  'the running server verifies a domain automatically and shows the findings and the next check',
  async t => {
    const zone: FakeZone = {}
    const postroad = await openTestAppliance(t, { zone })
    const { key, clock } = postroad
    const { body } = await postroad.post('/api/v1/domains', { domain: 'mine.test' }, { key })
    const { id, dns_records } = body.data
    t.match(body.data, { verified: false, checked_at: null, next_check_at: '2026-01-05T10:05:00.000Z' })
    const show = async () => (await postroad.get(`/api/v1/domains/${id}`, { key })).body.data
    const soon = (what: string, look: () => Promise<boolean>) =>
      until(what, async () => {
        await clock.advance(MINUTE_MS)
        return look()
      })
    await soon('it was checked', async () => (await show()).checked_at !== null)
    t.match((await show()).dns_records[0], { status: 'failed', found: [] })
    for (const { type, name, value } of dns_records)
      zone[name] = type === 'CNAME' ? { CNAME: value } : { TXT: [value] }
    await soon('it is verified', async () => (await show()).verified)
    const verified = await show()
    t.match(verified, { failing_since: null, next_check_at: /^2026-01-06T/ })
    t.ok(verified.dns_records.every((record: { status: string }) => record.status === 'verified'))
    t.match((await postroad.get('/api/v1/activity?action=domain.verified', { key })).body.data, [
      { actor: { type: 'system' }, subject: 'mine.test' },
    ])
    const send = () =>
      postroad.send(key, { to: 'ann@one.test', from_email: 'me@mine.test', subject: 'Hello', text: 'Hello' })
    t.equal((await send()).status, 200)
    for (const name of Object.keys(zone)) Reflect.deleteProperty(zone, name)
    clock.jump(DAY_MS)
    await soon('it was found failing', async () => (await show()).failing_since !== null)
    t.equal((await show()).verified, true)
    t.equal((await send()).status, 200)
    t.match((await postroad.run('domain', 'list')).out, /verified, records wrong since 2026-01-06/)
    const asked = await postroad.post(`/api/v1/domains/${id}/verify`, {}, { key })
    t.match(asked, { status: 200, body: { data: { verified: false, failing_since: null } } })
    t.match(await send(), { status: 403, body: { error: { code: 'domain_invalid' } } })
  },
)

t.test('a selector whose key has retired gets a new one within the hour, automatically', async t => {
  const zone: FakeZone = {}
  const postroad = await openTestAppliance(t, { zone })
  const { key, clock } = postroad
  const { id } = (await postroad.post('/api/v1/domains', { domain: 'mine.test' }, { key })).body.data
  await postroad.run('domain', 'rotate', 'mine.test', '--workspace', postroad.workspaceId, '--force')
  const states = async () =>
    (await postroad.get(`/api/v1/domains/${id}`, { key })).body.data.dns_records.map(
      (record: { key_state?: string }) => record.key_state,
    )
  t.ok((await states()).includes('retiring'))
  // Commands have the time of the machine.
  clock.jump(2 * 365 * DAY_MS)
  await clock.advance(MINUTE_MS)
  await until('no key is retiring', async () => !(await states()).includes('retiring'))
  t.ok((await states()).includes('standby'))
  await until('it is logged', () =>
    postroad.log.lines.some(({ event }) => event === 'retired DKIM keys replaced'),
  )
})
