/** The disk of PostgreSQL is full: mail is refused for now, and accepted again once there is room. Needs root. */
import { userInfo } from 'node:os'
import t from 'tap'
import { ownServer } from '../support/db/postgres-server.js'
import { deliversAll, faultIn, refusesPolitely } from '../support/program/fault.js'
import { MailFlow } from '../support/program/mail-flow.js'
import { openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { smallDisk } from '../support/program/small-disk.js'
import { openSink } from '../support/smtp/sink.js'

const isRoot = userInfo().uid === 0

t.test(
  'when the tables have no room, mail is refused, and goes on as soon as there is room',
  { skip: !isRoot && 'needs root' },
  async t => {
    const disk = smallDisk(t, 160)
    // Without room for its log PostgreSQL ends, as it does when it is killed.
    const server = await ownServer(t, { isLogWithData: false, onDataFolder: folder => disk.mountAt(folder) })
    const sink = await openSink(t)
    const { nodes, key } = await openNodes(t, server.url(), [{}, {}], { env: routeTo(sink.port) })
    const flow = new MailFlow(t, sink, key)
    for (const node of nodes) flow.through(node)
    await flow.acceptedOnce(200)
    const fault = await faultIn({ flow, sink, url: server.url() }, async () => {
      disk.fill()
      await flow.refused()
      disk.makeRoom()
    })
    await flow.more(150)
    await flow.stop()
    refusesPolitely(t, flow)
    await deliversAll(t, { flow, sink, url: server.url(), faults: [fault] })
    for (const node of nodes) t.equal((await node.end('SIGTERM')).status, 0)
  },
)
