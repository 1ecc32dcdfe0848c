/** A node is cut off from the database while the world still reaches it: another takes over, and what it had begun is refused. Needs root. */
import { userInfo } from 'node:os'
import t from 'tap'
import { ownServer } from '../support/db/postgres-server.js'
import { psql } from '../support/db/real-postgres.js'
import { deliversAll, faultIn } from '../support/program/fault.js'
import { MailFlow } from '../support/program/mail-flow.js'
import { netNamespace } from '../support/program/net-namespace.js'
import { openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const isRoot = userInfo().uid === 0

t.test(
  'what a node had in hand that is cut off from the database is delivered by another',
  { skip: !isRoot && 'needs root' },
  async t => {
    const elsewhere = netNamespace(t)
    const server = await ownServer(t, { address: elsewhere.database })
    const sink = await openSink(t, { address: '0.0.0.0' })
    const { nodes, key } = await openNodes(t, server.url(), [
      { env: routeTo(sink.port) },
      {
        through: elsewhere.through,
        env: {
          POSTROAD_HTTP_LISTEN: `${elsewhere.address}:0`,
          POSTROAD_SUBMISSION_LISTEN: `${elsewhere.address}:0`,
          POSTROAD_SUBMISSION_LISTEN_TLS: `${elsewhere.address}:0`,
          POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: elsewhere.host, port: sink.port }]),
        },
      },
    ])
    const [near, far] = nodes
    if (!near || !far) throw new Error('a node is missing')
    const flow = new MailFlow(t, sink, key)
    flow.through(near)
    flow.through(far, ['REST'])
    await flow.acceptedOnce(150)
    const fault = await faultIn({ flow, sink, url: server.url() }, async () => {
      elsewhere.cut()
      const cutAt = performance.now()
      await until(
        'the other to take over',
        () => near.log.some(({ event }) => event === 'node removed'),
        30_000,
      )
      t.comment(`taken over after ${((performance.now() - cutAt) / 1_000).toFixed(1)} s`)
      t.equal(psql(server.url(), 'select 1 from nodes').length, 1)
      t.equal((await far.send(key, {})).status, 503)
      // The other goes on alone.
      await flow.more(100)
      elsewhere.mend()
      t.equal((await far.ended).status, 1)
    })
    await flow.more(100)
    await flow.stop()
    await deliversAll(t, { flow, sink, url: server.url(), faults: [fault] })
  },
)
