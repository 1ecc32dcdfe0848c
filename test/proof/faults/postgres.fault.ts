/** PostgreSQL has no connections left. Restarted, stopped, cut off, full, failed over, wrong clocks: `test/nodes/`. */
import { Client } from 'pg'
import t from 'tap'
import { ownServer } from '../../support/db/postgres-server.js'
import { psql } from '../../support/db/real-postgres.js'
import { openNodes } from '../../support/program/database-nodes.js'
import { deliversAll, faultIn, refusesPolitely } from '../../support/program/fault.js'
import { MailFlow } from '../../support/program/mail-flow.js'
import { routeTo } from '../../support/program/process.js'
import { openSink } from '../../support/smtp/sink.js'

const CONNECTIONS = 40

t.test(
  'PostgreSQL has no connections left: mail is refused for now, and goes on once there are some',
  async t => {
    const server = await ownServer(t, {
      settings: [`max_connections=${CONNECTIONS}`, 'superuser_reserved_connections=0'],
    })
    const sink = await openSink(t)
    const { nodes, key } = await openNodes(t, server.url(), [{}], { env: routeTo(sink.port) })
    const flow = new MailFlow(t, sink, key)
    for (const node of nodes) flow.through(node)
    await flow.acceptedOnce(150)
    const taken: Client[] = []
    const release = async () => {
      await Promise.all(taken.splice(0).map(client => client.end().catch(() => {})))
    }
    t.teardown(release)
    const fault = await faultIn({ flow, sink, url: server.url() }, async () => {
      const others = await connected(server.url())
      taken.push(others)
      await takeAll(server.url(), taken)
      // The server's own are cut, as by a proxy or a failover, and somebody else has taken their places before it is back.
      for (;;) {
        await others.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name <> '${TAKER}' and backend_type = 'client backend'`,
        )
        await takeAll(server.url(), taken)
        const { rows } = await others.query<{ left: number }>(
          `select count(*)::int as left from pg_stat_activity where application_name <> '${TAKER}' and backend_type = 'client backend'`,
        )
        if (rows[0]?.left === 0) break
      }
      await flow.refused()
      t.equal((await nodes[0]?.get('/api/v1/health'))?.status, 503)
      await release()
    })
    await flow.more(100)
    await flow.stop()
    refusesPolitely(t, flow)
    await deliversAll(t, { flow, sink, url: server.url(), faults: [fault] })
    t.equal(psql(server.url(), `select 1 from messages where status <> 'delivered'`).length, 0)
    for (const node of nodes) t.equal((await node.end('SIGTERM')).status, 0)
  },
)

const TAKER = 'somebody else'

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: TAKER })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Until no more are given. */
async function takeAll(url: string, taken: Client[]): Promise<void> {
  for (;;) {
    try {
      taken.push(await connected(url))
    } catch (error) {
      if ((error as { code?: string }).code === '53300') return
      throw error
    }
  }
}
