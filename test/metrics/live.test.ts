/** `GET /live`: rates, connections and queue of the running server. */
import t from 'tap'
import { LiveCounters } from '../../src/metrics/live.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'

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
    queue: { messages: 0, held: 0, oldest_at: null },
    memory: { resident: Number },
  })
  t.ok((live.body.data.connections as { http: number }).http > 0)
  t.ok((live.body.data.consumers as object[]).length > 3)
  t.equal((await postroad.get('/api/admin/v1/live', { key: own })).status, 403)
})
