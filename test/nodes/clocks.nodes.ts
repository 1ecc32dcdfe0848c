/** Nodes whose clocks are an hour ahead and an hour behind: due times, limits and signs of life follow the clock of the database. */
import t from 'tap'
import { ownServer } from '../support/db/postgres-server.js'
import { allKnown, openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

/** Far less than an hour, far more than a loaded machine takes. */
const SECONDS = 30_000
const HOUR_MS = 3_600_000
const LATER_MS = 8_000
const DESTINATIONS = 10

t.test('nodes with wrong clocks send scheduled mail and retries in time, and remove nobody', async t => {
  const server = await ownServer(t)
  const sink = await openSink(t)
  const off = (ms: number) => ({
    flags: ['--import', `data:text/javascript,const now = Date.now; Date.now = () => now() + ${ms}`],
  })
  const { nodes, first, key } = await openNodes(t, server.url(), [{}, off(HOUR_MS), off(-HOUR_MS)], {
    env: { ...routeTo(sink.port), POSTROAD_MTA_RETRY_FIRST: '3s' },
  })
  for (const node of nodes.slice(1)) await node.logged('clock corrected')
  await allKnown(nodes)

  sink.atRcpt = 'defer'
  const begun = Date.now()
  const mail = (to: string) => ({
    to: [to],
    from_email: 'app@sender.test',
    subject: 'Hello',
    html: '<p>Hello</p>',
  })
  for (const [at, node] of nodes.entries())
    for (let index = 0; index < DESTINATIONS; index += 1) {
      const now = mail(`now${at}@d${index}.test`)
      t.equal((await node.send(key, now)).status, 200)
      const sendAt = new Date(Date.now() + LATER_MS).toISOString()
      const later = { ...mail(`later${at}@d${index}.test`), send_at: sendAt }
      const { status } = await node.send(key, later)
      t.equal(status, 202)
    }
  const deferred = () =>
    new Set(
      nodes
        .flatMap(({ log }) => log.filter(({ event }) => event === 'message deferred'))
        .map(line => String(line['to']))
        .filter(to => to.startsWith('now')),
    )
  await until('each of the first to have failed once', () => deferred().size === DESTINATIONS * nodes.length)
  sink.atRcpt = 'accept'
  const all = 2 * DESTINATIONS * nodes.length
  const rows = await until(
    'all to be delivered, and known to be',
    () => {
      if (sink.accepted.length < all) return undefined
      const found = first.sql<{ at: number | null; due: number | null }>(
        `select m.delivered_at as at, c.scheduled_at as due from messages m join message_contents c on c.id = m.content_id`,
      )
      return found.every(({ at }) => at !== null) ? found : undefined
    },
    LATER_MS + SECONDS,
  )
  t.equal(rows.length, all)
  t.same(
    rows.filter(({ at, due }) => Number(at) < Math.max(begun, due ?? 0) || Number(at) > Date.now() + 1_000),
    [],
    'nothing early',
  )
  t.equal(first.sql('select id from nodes').length, 3, 'nobody was removed')
  t.notOk(nodes.some(({ log }) => log.some(({ event }) => event === 'node removed')))
  for (const node of nodes) t.equal((await node.end('SIGTERM')).status, 0)
})
