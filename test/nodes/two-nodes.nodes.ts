/** Two servers on one PostgreSQL database: what is accepted anywhere is delivered once, whichever of them dies. */
import t from 'tap'
import { LEASES } from '../../src/cluster/leases.js'
import type { Initialised, Serving } from '../support/program/process.js'
import { expireSign, openTwo } from '../support/program/nodes.js'
import { until } from '../support/until.js'

const mailTo = (to: string) => ({
  to: [to],
  from_email: 'shop@sender.test',
  subject: 'Hello',
  html: '<p>Hello</p>',
})
const destinations = Array.from({ length: 12 }, (_, at) => `d${at}.test`)

async function sendThrough(nodes: readonly Serving[], key: string, each: number): Promise<string[]> {
  const sent: string[] = []
  await Promise.all(
    nodes.flatMap((node, at) =>
      Array.from({ length: each }, async (_, index) => {
        const to = `p${index}.${at}@${destinations[index % destinations.length] ?? ''}`
        const { status } = await node.send(key, mailTo(to))
        if (status === 200) sent.push(to)
      }),
    ),
  )
  return sent
}

const statuses = (first: Initialised) =>
  Object.fromEntries(
    first
      .sql<{ status: string; messages: number }>(
        'select status, count(*)::int as messages from messages group by status',
      )
      .map(({ status, messages }) => [status, messages]),
  )

t.test('mail accepted by either node is delivered, each message once', async t => {
  const { sink, first, one, two } = await openTwo(t)
  const sent = await sendThrough([one, two], first.key, 24)
  t.equal(sent.length, 48)
  const mails = await sink.acceptedOnce(48)
  t.same(mails.map(({ recipients }) => recipients.join()).sort(), [...sent].sort())
  await until('all to be recorded', () => statuses(first)['delivered'] === 48)
})

t.test('what a killed node had in hand and had accepted is delivered by the other', async t => {
  const { sink, first, one, two } = await openTwo(t)
  const sent = await sendThrough([one, two], first.key, 24)
  await one.end('SIGKILL')
  const later = await sendThrough([two], first.key, 12)
  const expected = new Set([...sent, ...later])
  await until('all to be recorded', () => statuses(first)['delivered'] === expected.size + 12, 40_000)
  t.same(new Set(sink.accepted.map(({ recipients }) => recipients.join())), expected)
  t.equal(first.sql('select id from nodes').length, 1, 'the dead one is removed')
  t.equal(first.sql('select name from leases').length, LEASES.length, 'its work is taken over')
})

t.test('a node that was stopped for long is refused, and ends', async t => {
  const { first, one, two } = await openTwo(t)
  one.signal('SIGSTOP')
  expireSign(first, one)
  await until('it to be removed', () => first.sql('select id from nodes').length === 1, 40_000)
  await until(
    'its work to be taken over',
    () => first.sql('select name from leases').length === LEASES.length,
  )
  one.signal('SIGCONT')
  const { status } = await one.ended
  t.equal(status, 1)
  t.ok(one.log.some(({ event }) => event === 'node removed by others'))
  t.equal((await two.send(first.key, mailTo('ann@one.test'))).status, 200)
})

t.test('a node that stops hands its work over at once', async t => {
  const { first, one, two } = await openTwo(t)
  const { status } = await one.end('SIGTERM')
  t.equal(status, 0)
  t.equal(first.sql('select id from nodes').length, 1)
  await until(
    'all work to be taken over',
    () => first.sql('select name from leases').length === LEASES.length,
  )
  t.equal((await two.send(first.key, mailTo('ann@one.test'))).status, 200)
})

t.test('a request repeated at the other node at the same time is executed once', async t => {
  const { first, one, two } = await openTwo(t)
  for (let round = 0; round < 10; round += 1) {
    const headers = { 'Idempotency-Key': `order ${round}` }
    const answers = await Promise.all(
      [one, two, one, two].map(node =>
        node.post('/api/v1/email/send', mailTo(`p${round}@one.test`), { key: first.key, headers }),
      ),
    )
    t.ok(answers.every(({ status }) => status === 200 || status === 409))
    const ids = new Set(
      answers.flatMap(({ status, body }) => (status === 200 ? [body.data.results[0].message_id] : [])),
    )
    t.equal(ids.size, 1)
  }
  t.equal(first.sql('select id from messages').length, 10)
})
