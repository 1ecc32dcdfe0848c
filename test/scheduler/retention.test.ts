/** Retention on the running appliance: old records are deleted, unsent mail stays, and responses stay consistent. */
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Dear Ann.\n' }
const attached = {
  attachments: [
    { filename: 'a.txt', content_type: 'text/plain', content: Buffer.alloc(700_000, 'a').toString('base64') },
  ],
}

async function open(t: Test, toml = '') {
  const postroad = await openTestAppliance(t, { toml })
  return {
    ...postroad,
    async sent(fields: object = {}): Promise<string> {
      const { body } = await postroad.send(postroad.key, { ...good, ...fields })
      return String(body.data.message_id)
    },
    async delivered(fields: object = {}): Promise<string> {
      const { body } = await postroad.send(postroad.key, { ...good, ...fields })
      const id = String(body.data.results[0].message_id)
      await postroad.messageOnce(postroad.key, id, 'delivered')
      await until('it is counted', () => (postroad.rowCounts()['daily_counters'] ?? 0) >= 3)
      return id
    },
    message: (id: string) => postroad.get(`/api/v1/email/${id}`, { key: postroad.key }),
    /** So much later: every job has run, and again after hours, for some wait for others. */
    async later(ms: number): Promise<void> {
      for (const jumpMs of [ms, 6 * HOUR_MS]) {
        postroad.clock.skip(jumpMs)
        await postroad.clock.advance(MINUTE_MS)
        await rest(postroad)
      }
    },
  }
}

/** Jobs that run for the life of the appliance. */
const LASTING: readonly unknown[] = [
  'import-contacts',
  'send account mail',
  'send-campaigns',
  'announce-waiting-campaigns',
  'check-campaigns',
  'run-automations',
  'deliver webhooks',
]

/** Until every job that has begun has ended, but for those. */
async function rest({ log }: TestAppliance): Promise<void> {
  const count = (wanted: string) =>
    log.lines.filter(({ event, fields }) => event === wanted && !LASTING.includes(fields['job'])).length
  await until('the jobs have ended', () => count('job started') === count('job finished'))
}

function contentOf({ dataDir }: TestAppliance, id: string) {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  try {
    const select = `select html, text, raw, headers from message_contents
      where id in (select content_id from messages where id = ? or content_id = ?)`
    return handle.prepare(select).get(id, id) as Record<string, unknown>
  } finally {
    handle.close()
  }
}

const deletedRecords = ({ log }: TestAppliance) =>
  log.lines
    .filter(({ event }) => event === 'old records deleted')
    .map(({ level, fields: { what, records } }) => [level, what, records])

t.test('the text of old mail is deleted, its envelope and status stay', async t => {
  const postroad = await open(t)
  const id = await postroad.delivered({
    html: '<p>Dear Ann</p>',
    headers: { 'X-Note': 'secret' },
    ...attached,
  })
  const before = (await postroad.message(id)).body.data
  t.match(before, {
    subject: 'Hello',
    status: 'delivered',
    attachments: [{ filename: 'a.txt', size: 700_000 }],
  })
  t.equal(postroad.rowCounts()['message_parts'], 3)
  await postroad.later(29 * DAY_MS)
  t.match(contentOf(postroad, id), { html: '<p>Dear Ann</p>', text: good.text })
  await postroad.later(DAY_MS)
  t.same(contentOf(postroad, id), { html: null, text: null, raw: null, headers: null })
  t.equal(postroad.rowCounts()['message_parts'], 0)
  t.same((await postroad.message(id)).body.data, before)
  t.match((await postroad.get('/api/v1/email', { key: postroad.key })).body.data, [
    { message_id: id, subject: 'Hello', status: 'delivered' },
  ])
  t.same(
    deletedRecords(postroad).filter(([, what]) => what === 'contents of mail'),
    [['info', 'contents of mail', 1]],
  )
})

t.test('old messages are deleted with their trace; younger ones stay', async t => {
  const postroad = await open(t)
  const old = await postroad.delivered()
  postroad.clock.skip(DAY_MS)
  const young = await postroad.delivered({ to: 'bob@one.test' })
  await postroad.later(89 * DAY_MS)
  t.equal((await postroad.message(old)).status, 404)
  t.match(await postroad.message(young), {
    status: 200,
    body: { data: { trace: [{ outcome: 'delivered' }] } },
  })
  t.match(postroad.rowCounts(), { messages: 1, message_contents: 1, attempts: 1 })
  await postroad.later(2 * DAY_MS)
  t.match(postroad.rowCounts(), { messages: 0, message_contents: 0, attempts: 0, events: 0 })
})

t.test('a removed workspace is kept for 30 days, then purged completely', async t => {
  const postroad = await open(t)
  const own = await postroad.delivered()
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'short-lived')
  const key = await postroad.makeKey('--workspace', id)
  const { body } = await postroad.send(key, { ...good, ...attached })
  await postroad.messageOnce(key, String(body.data.results[0].message_id), 'delivered')
  t.match(await postroad.send(key, { ...good, send_at: '2026-01-06T10:00:00Z' }), { status: 202 })
  await postroad.json('workspace', 'remove', id, '--yes')
  // The command went by the clock of this machine.
  const handle = new BetterSqlite(join(postroad.dataDir, 'postroad.db'))
  handle.prepare('update workspaces set deleted_at = ? where id = ?').run(postroad.clock.now(), id)
  handle.close()
  await postroad.later(29 * DAY_MS)
  t.match(postroad.rowCounts(), { workspaces: 2, messages: 3, queue: 1, api_keys: 3 })
  await postroad.later(DAY_MS)
  t.match(postroad.rowCounts(), {
    ...{ workspaces: 1, sandboxes: 1, messages: 1, message_contents: 1, message_parts: 0 },
    ...{ queue: 0, attempts: 1, api_keys: 2 },
  })
  t.equal((await postroad.send(key, good)).status, 401)
  t.equal((await postroad.message(own)).status, 200)
  t.equal(deletedRecords(postroad).filter(([, what]) => what === 'removed workspaces').length, 1)
})

t.test('held mail is kept until it is released, and sent complete', async t => {
  const postroad = await open(t)
  await postroad.run('queue', 'hold', '--all')
  const id = await postroad.sent({ send_at: '2026-01-05T10:30:00Z', ...attached })
  t.equal((await postroad.run('queue', 'hold', id)).status, 0)
  await postroad.later(400 * DAY_MS)
  t.match(postroad.rowCounts(), { messages: 1, message_contents: 1, message_parts: 3, queue: 1 })
  t.match((await postroad.message(id)).body.data, { status: 'scheduled', subject: 'Hello' })
  t.equal((await postroad.run('queue', 'release', id)).status, 0)
  await postroad.clock.advance(2 * MINUTE_MS)
  await postroad.messageOnce(postroad.key, id, 'delivered')
  const caught = String((await postroad.get(`/capture/${id}`)).body.data.raw)
  t.match(caught, 'Dear Ann.')
  t.match(caught, /filename="?a\.txt/)
  await postroad.later(DAY_MS)
  t.match(contentOf(postroad, id), { text: good.text }, 'kept for its time from then on')
  await postroad.later(30 * DAY_MS)
  t.match(contentOf(postroad, id), { text: null })
})

t.test('scheduled mail keeps its text until it is sent, however short the retention', async t => {
  const postroad = await open(t, '[retention]\ncontent = "1d"')
  const id = await postroad.sent({ send_at: '2026-01-08T09:00:00Z' })
  await postroad.later(2 * DAY_MS)
  t.match(contentOf(postroad, id), { text: good.text })
  postroad.clock.skip(17 * HOUR_MS)
  await postroad.clock.advance(MINUTE_MS)
  await postroad.messageOnce(postroad.key, id, 'delivered')
  t.match(String((await postroad.get(`/capture/${id}`)).body.data.raw), 'Dear Ann.')
})

t.test('a retention of 0 keeps everything', async t => {
  const keys = [
    'content',
    'messages',
    'bounces',
    'events',
    'statistics',
    'reports',
    'activity',
    'product_views',
  ]
  const postroad = await open(t, `[retention]\n${keys.map(key => `${key} = "0"`).join('\n')}`)
  const id = await postroad.delivered()
  const { messages, message_contents, attempts, events, daily_counters } = postroad.rowCounts()
  await postroad.later(3_000 * DAY_MS)
  t.match(postroad.rowCounts(), { messages, message_contents, attempts, events, daily_counters })
  t.match(contentOf(postroad, id), { text: good.text })
})

t.test('counters, activities, bounces and stored responses are deleted after their retention', async t => {
  const postroad = await open(t)
  const { key } = postroad
  const { body } = await postroad.post('/api/v1/email/send', good, {
    key,
    headers: { 'Idempotency-Key': 'k1' },
  })
  await postroad.messageOnce(key, String(body.data.results[0].message_id), 'delivered')
  await postroad.post('/api/v1/domains', { domain: 'mine.test' }, { key })
  const sandbox = await postroad.makeKey('--sandbox')
  await postroad.send(sandbox, { ...good, to: 'bounced@simulator.test' })
  const counted = async () => (await postroad.get('/api/v1/analytics?period=1d', { key })).body.data
  // What is counted after the clock has jumped would stand for a later day.
  await until('it was counted', async () => (await counted()).delivered === 1)
  await until('it bounced', () => postroad.rowCounts()['bounces'] === 1)
  const activities = async () =>
    (await postroad.get('/api/v1/activity?action=domain.added', { key })).body.pagination.total as number
  t.match(postroad.rowCounts(), { kept_answers: 1, bounces: 1 })
  await postroad.later(0)
  t.match(postroad.rowCounts(), { kept_answers: 0, bounces: 1 })
  await postroad.later(364 * DAY_MS)
  t.match(postroad.rowCounts(), { bounces: 1 })
  t.equal(await activities(), 1)
  await postroad.later(DAY_MS)
  t.match(postroad.rowCounts(), { bounces: 0 })
  t.equal(await activities(), 0)
  t.ok((postroad.rowCounts()['daily_counters'] ?? 0) > 0)
  await postroad.later(36 * DAY_MS)
  t.match(postroad.rowCounts(), { daily_counters: 0 })
})
