/** PostgreSQL ends and comes back while mail is accepted and delivered: nothing is lost, and nobody has to do anything. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { SERVER_RUN } from '../../src/db/postgres/postgres-dialect.js'
import { ownServer } from '../support/db/postgres-server.js'
import { psql } from '../support/db/real-postgres.js'
import { MailFlow } from '../support/program/mail-flow.js'
import { openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { deliversAll, faultIn, refusesPolitely } from '../support/program/fault.js'

t.test(
  'mail accepted while PostgreSQL is killed, restarted and stopped for 20 seconds is all delivered',
  async t => {
    const server = await ownServer(t)
    const sink = await openSink(t)
    const { nodes, key } = await openNodes(t, server.url(), [{}, {}], { env: routeTo(sink.port) })
    const flow = new MailFlow(t, sink, key)
    for (const node of nodes) flow.through(node)
    await flow.acceptedOnce(150)

    const serverRun = () => psql(server.url(), `select ${SERVER_RUN}`)[0]
    const runBefore = serverRun()
    const faults = []
    faults.push(
      await faultIn(flow, sink, async () => {
        server.kill()
        await server.start()
      }),
    )
    t.not(serverRun(), runBefore, 'ids of transactions from before the crash are not looked up')
    await flow.more(150)
    faults.push(await faultIn(flow, sink, () => server.restart('fast')))
    await flow.more(150)
    faults.push(
      await faultIn(flow, sink, async () => {
        await server.stop('fast')
        const before = flow.refusals.length
        await sleep(20_000)
        t.ok(flow.refusals.length > before, 'mail is refused meanwhile')
        for (const node of nodes) t.equal((await node.get('/api/v1/health')).status, 503)
        await server.start()
      }),
    )
    await flow.more(150)
    await flow.acceptedOnce(1_000)
    await flow.stop()

    refusesPolitely(t, flow)
    await deliversAll(t, { flow, sink, url: server.url(), faults })
    for (const node of nodes) t.equal((await node.end('SIGTERM')).status, 0)
  },
)
