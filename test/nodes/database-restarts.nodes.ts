/** PostgreSQL ends and comes back while mail is accepted and delivered: nothing is lost, and nobody has to do anything. */
import t from 'tap'
import { SERVER_RUN } from '../../src/db/postgres/postgres-dialect.js'
import { ownServer } from '../support/db/postgres-server.js'
import { psql } from '../support/db/real-postgres.js'
import { MailFlow } from '../support/program/mail-flow.js'
import { openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { deliversAll, faultIn, refusesPolitely } from '../support/program/fault.js'
import { until } from '../support/until.js'

/** Longer than a node is believed alive without a sign. */
const STOPPED_MS = 20_000

t.test(
  'mail accepted while PostgreSQL is killed, restarted and stopped for 20 seconds is all delivered',
  async t => {
    const server = await ownServer(t)
    const sink = await openSink(t)
    const { nodes, key } = await openNodes(t, server.url(), [{}, {}], { env: routeTo(sink.port) })
    const flow = new MailFlow(t, sink, key)
    for (const node of nodes) flow.through(node)
    await flow.acceptedOnce(150)

    const url = server.url()
    const serverRun = () => psql(url, `select ${SERVER_RUN}`)[0]
    const runBefore = serverRun()
    const faults = []
    faults.push(
      await faultIn({ flow, sink, url }, async () => {
        server.kill()
        await server.start()
      }),
    )
    t.not(serverRun(), runBefore, 'ids of transactions from before the crash are not looked up')
    await flow.more(150)
    faults.push(await faultIn({ flow, sink, url }, () => server.restart('fast')))
    await flow.more(150)
    faults.push(
      await faultIn({ flow, sink, url }, async () => {
        await server.stop('fast')
        await flow.refused()
        for (const node of nodes)
          await until('health to say so', async () => (await node.get('/api/v1/health')).status === 503)
        await server.start()
        // As if it had been away for so long: the last signs of both nodes are that old.
        psql(url, `update nodes set alive_until = alive_until - ${STOPPED_MS}`)
      }),
    )
    await flow.more(150)
    await flow.stop()

    refusesPolitely(t, flow)
    await deliversAll(t, { flow, sink, url, faults })
    for (const node of nodes) t.equal((await node.end('SIGTERM')).status, 0)
  },
)
