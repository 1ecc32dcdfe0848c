/** Addresses at simulator.test play an outcome for a sandbox key. */
import t from 'tap'
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const NOW = '2026-01-05T10:00:00.000Z'

async function play(postroad: TestAppliance, key: string, to: string) {
  const { body } = await postroad.send(key, { ...good, to })
  const id = String(body.data.results[0].message_id)
  return (await postroad.get(`/api/v1/email/${id}/status`, { key })).body.data
}

function events(postroad: TestAppliance): { kind: string; is_sandbox: number; payload: string }[] {
  const database = new BetterSqlite(join(postroad.dataDir, 'postroad.db'), { readonly: true })
  try {
    return database.prepare('select kind, is_sandbox, payload from events order by seq').all() as []
  } finally {
    database.close()
  }
}

// proves: What the service does > Delivery status lookup per message
// proves: Message status record > message_id | status | to | sent_at, delivered_at, opened_at, clicked_at, bounced_at
// proves: Message status record > bounce_type; States and transitions > Message statuses sent delivered bounced
// proves: Email > GET /email/:messageId/status
// proves: decisions: Email > Message status machine scheduled -> | Sandbox each workspace has a
t.test('each address plays what it is named after', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox')
  t.match(await play(postroad, key, 'delivered@simulator.test'), { status: 'delivered', delivered_at: NOW })
  t.match(await play(postroad, key, 'Bounced+7@Simulator.TEST'), {
    status: 'bounced',
    bounced_at: NOW,
    bounce_type: 'permanent',
    delivered_at: null,
  })
  t.match(await play(postroad, key, 'complained@simulator.test'), {
    status: 'delivered',
    complained_at: NOW,
  })
  t.match(await play(postroad, key, 'opened@simulator.test'), {
    status: 'opened',
    opened_at: NOW,
    clicked_at: null,
  })
  t.match(await play(postroad, key, 'clicked@simulator.test'), {
    status: 'clicked',
    delivered_at: NOW,
    opened_at: NOW,
    clicked_at: NOW,
  })
  for (const to of ['other@simulator.test', 'bounced@simulator.test.example', 'bounced@one.test'])
    t.match(await play(postroad, key, to), { status: 'sent', delivered_at: null, bounced_at: null }, to)
})

// proves: decisions: Email > Sandbox each workspace has a
t.test('simulated results are events of the sandbox and suppress nobody', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox')
  await play(postroad, key, 'clicked@simulator.test')
  const clicked = events(postroad)
  t.same(
    clicked.map(({ kind }) => kind),
    ['email.accepted', 'email.sent', 'email.delivered', 'email.opened', 'email.clicked'],
  )
  t.ok(clicked.every(event => event.is_sandbox === 1))
  await play(postroad, key, 'complained@simulator.test')
  await play(postroad, key, 'bounced@simulator.test')
  const bounces = await until('the bounce to be recorded', async () => {
    const { body } = await postroad.get('/api/v1/bounces', { key })
    return body.pagination.total === 1 && body.data
  })
  t.match(bounces, [
    { email: 'bounced@simulator.test', type: 'permanent', smtp_status: '5.1.1', is_sandbox: true },
  ])
  t.match(await play(postroad, key, 'bounced@simulator.test'), { status: 'bounced' }, 'again')
  t.match(postroad.rowCounts(), { suppressions: 0, queue: 0 })
})

// proves: decisions: Email > Sandbox each workspace has a
t.test('batches play as well', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox')
  const messages = ['bounced', 'opened'].map(name => ({ ...good, to: `${name}@simulator.test` }))
  const { body } = await postroad.post('/api/v1/email/batch', { messages }, { key })
  t.match(body.data, { status: 'completed', sent: 2 })
  const { body: log } = await postroad.get('/api/v1/email', { key })
  t.same(log.data.map((one: { status: string }) => one.status).sort(), ['bounced', 'opened'])
})

// proves: decisions: Email > Sandbox each workspace has a
t.test('for a live key they are addresses like any other', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await postroad.send(postroad.key, { ...good, to: 'bounced@simulator.test' })
  await postroad.messageOnce(postroad.key, String(body.data.results[0].message_id), 'delivered')
  t.notOk(events(postroad).some(({ kind }) => kind === 'email.bounced'))
})

t.test('an address that is suppressed for live mail plays in the sandbox still', async t => {
  const postroad = await openTestAppliance(t)
  const sandbox = await postroad.makeKey('--sandbox')
  const to = 'opened@simulator.test'
  t.match(await postroad.post('/api/v1/suppressions', { email: to }, { key: postroad.key }), {
    status: 201,
  })
  t.match(await play(postroad, postroad.key, to), { status: 'suppressed' })
  t.match(await play(postroad, sandbox, to), { status: 'opened' })
})
