/** A standby takes the place of a PostgreSQL server that died: the nodes find it by themselves, and nothing accepted is lost. */
import t from 'tap'
import { ownServer } from '../support/db/postgres-server.js'
import { deliversAll, faultIn, refusesPolitely } from '../support/program/fault.js'
import { MailFlow } from '../support/program/mail-flow.js'
import { openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'

t.test('mail accepted before, while and after a standby is promoted is all delivered', async t => {
  const first = await ownServer(t)
  const second = await first.standby()
  t.teardown(() => second.remove())
  const sink = await openSink(t)
  const hosts = [first, second].map(({ folder }) => folder)
  const url = (order: readonly string[]) =>
    `postgres://postroad@/postgres?host=${order.join(',')}&target_session_attrs=read-write`
  const { nodes, key } = await openNodes(t, url(hosts), [{}, { database: url(hosts.toReversed()) }], {
    env: routeTo(sink.port),
  })
  const flow = new MailFlow(t, sink, key)
  for (const node of nodes) flow.through(node)
  await flow.acceptedOnce(200)
  const fault = await faultIn({ flow, sink, url: first.url(), urlAfter: second.url() }, async () => {
    first.kill()
    await flow.refused()
    await second.promote()
  })
  await flow.more(150)
  await flow.stop()
  refusesPolitely(t, flow)
  await deliversAll(t, { flow, sink, url: second.url(), faults: [fault] })
  for (const node of nodes) t.equal((await node.end('SIGTERM')).status, 0)
})
