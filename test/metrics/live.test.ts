/** `GET /live`: rates, connections and queue of the running server. */
import t from 'tap'
import { DestinationRates } from '../../src/metrics/destination-rates.js'
import { LiveCounters } from '../../src/metrics/live.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

t.test('rates count the last whole seconds and forget what is older than a minute', async t => {
  const clock = new FakeClock()
  const counters = new LiveCounters(clock)
  counters.count('accepted', 5)
  t.match(counters.lastSeconds(60), { accepted: 0 }, 'the current second is not over')
  await clock.advance(1_000)
  counters.count('delivered')
  counters.count('delivered')
  t.match(counters.lastSeconds(1), { accepted: 5, delivered: 0 })
  await clock.advance(1_000)
  t.match(counters.lastSeconds(1), { accepted: 0, delivered: 2 })
  t.match(counters.lastSeconds(60), { accepted: 5, delivered: 2 })
  await clock.advance(58_000)
  t.match(counters.lastSeconds(60), { accepted: 5 }, 'sixty seconds ago')
  await clock.advance(1_000)
  t.match(counters.lastSeconds(60), { accepted: 0, delivered: 2 })
  counters.count('bounced')
  await clock.advance(61_000)
  t.same(counters.lastSeconds(60), { accepted: 0, delivered: 0, deferred: 0, bounced: 0, failed: 0 })
})

t.test('accepted and delivered messages show, one per recipient', async t => {
  const postroad = await openTestAppliance(t)
  const viewer = await tokenWith(postroad, 'viewer')
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'owner' }])
  const mail = {
    to: ['ann@one.test', 'bob@one.test'],
    subject: 'Hi',
    text: 'Hi.\n',
    from_email: 'me@sender.test',
  }
  const { body } = await postroad.send(postroad.key, mail)
  for (const { message_id: id } of body.data.results as { message_id: string }[])
    await postroad.messageOnce(postroad.key, id, 'delivered')
  await postroad.clock.advance(1_000)
  const live = await postroad.get('/api/admin/v1/live', { key: viewer })
  t.match(live.body.data, {
    serving: true,
    last_minute: { accepted: 2, delivered: 2, deferred: 0, bounced: 0 },
    connections: { http: Number, deliveries: 0 },
    queue: { messages: 0, due: 0, held: 0, oldest_at: null },
    balance: { accepted: 2, delivered: 2, waiting: 0, difference: 0 },
    database: { octets: Number, log_octets: Number },
    memory: { resident: Number },
  })
  t.ok((live.body.data.connections as { http: number }).http > 0)
  t.ok((live.body.data.consumers as object[]).length > 3)
  t.equal((await postroad.get('/api/admin/v1/live', { key: own })).status, 403)
})

t.test('rates by destination forget what is older than a minute, and bound their memory', async t => {
  const clock = new FakeClock()
  const rates = new DestinationRates(clock)
  rates.count('one.test', 'delivered')
  rates.count('one.test', 'deferred')
  await clock.advance(30_000)
  rates.count('one.test', 'delivered')
  rates.count('two.test', 'bounced')
  t.same(
    [...rates.byDestination],
    [
      ['one.test', { delivered: 2, deferred: 1, bounced: 0 }],
      ['two.test', { delivered: 0, deferred: 0, bounced: 1 }],
    ],
  )
  await clock.advance(30_000)
  t.same(rates.byDestination.get('one.test'), { delivered: 1, deferred: 0, bounced: 0 })
  await clock.advance(30_000)
  t.equal(rates.byDestination.size, 0)
  for (let n = 0; n < 20_000; n += 1) rates.count(`d${n}.test`, 'delivered')
  t.equal(rates.byDestination.size, 10_000)
  await clock.advance(60_000)
  rates.count('new.test', 'delivered')
  t.same([...rates.byDestination.keys()], ['new.test'])
})

t.test('the busiest destinations are listed with what waits for each', async t => {
  const postroad = await openTestAppliance(t)
  const viewer = await tokenWith(postroad, [{ workspaceId: '*', role: 'viewer' }])
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'owner' }])
  const send_at = new Date(postroad.clock.now() + 3_600_000).toISOString()
  const mail = (to: string[], more = {}) => ({
    ...{ to, subject: 'Hi', text: 'Hi.\n', from_email: 'me@sender.test' },
    ...more,
  })
  const later = Array.from({ length: 60 }, (_, n) => `ann@d${n}.test`)
  await postroad.send(postroad.key, mail(['ann@busy.test', 'bob@busy.test'], { send_at }))
  const queue = async () => (await postroad.get('/api/admin/v1/live/queue', { key: viewer })).body.data
  t.match(await queue(), {
    active: 0,
    destinations: [{ destination: 'busy.test', queued: 2, due: 0, held: 0, has_more: false, delivered: 0 }],
  })
  await postroad.send(postroad.key, mail(later, { send_at }))
  const { body } = await postroad.send(postroad.key, mail(['cyd@zz.test']))
  await postroad.send(postroad.key, mail(['dan@zz.test'], { send_at }))
  await postroad.messageOnce(postroad.key, body.data.results[0].message_id, 'delivered')
  await postroad.clock.advance(2_000)
  await queue()
  const now = await until('the new count', async () => {
    const seen = await queue()
    return seen.destinations.length === 50 && seen
  })
  t.match(
    now.destinations.find((row: { destination: string }) => row.destination === 'zz.test'),
    { queued: 1, delivered: 1 },
    'of more than 50, those with attempts come first',
  )
  t.match(now.sites, [{ site: String, delivered: 1 }])
  t.equal((await postroad.get('/api/admin/v1/live/queue', { key: own })).status, 403)
})
