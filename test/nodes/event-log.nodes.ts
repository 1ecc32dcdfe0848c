/** Consumers of the event log while mail flows, beside a snapshot and a transaction that stay open. */
import t from 'tap'
import { Client } from 'pg'
import { ownServer } from '../support/db/postgres-server.js'
import { psql } from '../support/db/real-postgres.js'
import { deliversAll } from '../support/program/fault.js'
import { MailFlow } from '../support/program/mail-flow.js'
import { openNodes } from '../support/program/database-nodes.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

/** Mails of each measurement. */
const MAILS = 500

/** A transaction that stays open, and has written if it is to have an id. */
async function holdTransaction(url: string, hasWritten: boolean): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('begin isolation level repeatable read')
  await client.query(hasWritten ? 'select pg_current_xact_id()' : 'select count(*) from messages')
  return client
}

t.test('cursors move about once a second, and no event waits for transactions of others', async t => {
  const server = await ownServer(t)
  const sink = await openSink(t)
  const { nodes, key } = await openNodes(t, server.url(), [{}, {}], { env: routeTo(sink.port) })
  const flow = new MailFlow(t, sink, key)
  for (const node of nodes) flow.through(node)
  await flow.acceptedOnce(100)
  const url = server.url()
  const writes = () =>
    Number(
      psql(url, `select n_tup_ins + n_tup_upd from pg_stat_user_tables where relname = 'event_cursors'`)[0],
    )
  const position = () => Number(psql(url, `select max(seq) from event_cursors`)[0])
  const consumers = Number(psql(url, 'select count(*) from event_cursors')[0])

  const measured = async (what: string) => {
    const [mails, before, from, begun] = [flow.accepted.size, writes(), position(), performance.now()]
    await flow.more(MAILS)
    await until('the consumers to have gone on', () => position() >= from + MAILS)
    const seconds = (performance.now() - begun) / 1_000
    const perConsumer = (writes() - before) / consumers
    const rate = (flow.accepted.size - mails) / seconds
    t.comment(
      `${what}: ${rate.toFixed(0)} mails/s, ${perConsumer.toFixed(1)} cursor writes each in ${seconds.toFixed(1)} s`,
    )
    // One at the beginning, and one a second.
    t.ok(perConsumer < seconds + 2, 'cursors are not written for each batch')
  }
  await measured('alone')
  const held = [await holdTransaction(url, false), await holdTransaction(url, true)]
  await measured('beside open transactions')
  for (const client of held) await client.end()
  await flow.stop()
  await deliversAll(t, { flow, sink, url, faults: [] })
  const [duplicates] = psql(
    url,
    `select count(*) from (select message_id from events where kind = 'email.delivered' group by message_id having count(*) > 1) as twice`,
  )
  t.equal(duplicates, '0')
})
