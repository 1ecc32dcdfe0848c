/**
 * What holds for every route of the running appliance, found in its own description, when a sandbox key calls it: live data is
 * neither seen nor touched, whatever is named.
 */
import t, { type Test } from 'tap'
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import { ask, readOperations, usualRequest, type Operation } from '../../support/api/api-document.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'
import { until } from '../../support/until.js'

/** Stands in everything live. */
const MARK = 'live-only'
const LIVE_DOMAIN = `${MARK}.test`

type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>

/** Everything in the database but the cursors of consumers. */
function readRows({ dataDir }: TestAppliance): Rows {
  const database = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  try {
    const tables = database
      .prepare(`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`)
      .pluck()
      .all() as string[]
    return Object.fromEntries(
      tables
        // Nor what an index keeps as tables.
        .filter(name => name !== 'event_cursors' && !name.startsWith('contact_search'))
        .map(name => [name, database.prepare(`select * from "${name}"`).all() as []]),
    )
  } finally {
    database.close()
  }
}

function sandboxOf({ sandboxes = [] }: Rows): unknown {
  return sandboxes[0]?.['id']
}

/** Live data of every kind that a route shows or changes. @returns the names of all of it */
async function fillLive(postroad: TestAppliance): Promise<string[]> {
  const { key } = postroad
  const vouched = await postroad.json<{ id: string }>(
    ...['domain', 'add', LIVE_DOMAIN, '--vouch', '--workspace', postroad.workspaceId],
  )
  const domain = await postroad.post('/api/v1/domains', { domain: `unverified.${LIVE_DOMAIN}` }, { key })
  const mail = { from_email: `shop@${LIVE_DOMAIN}`, subject: `${MARK} subject`, text: `${MARK} text` }
  const to = [`ann@${LIVE_DOMAIN}`, `bob@${LIVE_DOMAIN}`]
  const sent = await postroad.send(key, { ...mail, to })
  const scheduled = await postroad.send(key, { ...mail, to, send_at: '2026-01-05T12:00:00Z' })
  const messages = to.map(one => ({ ...mail, to: one }))
  const batch = await postroad.post('/api/v1/email/batch', { messages }, { key })
  await postroad.post('/api/v1/suppressions', { email: `gone@${LIVE_DOMAIN}` }, { key })
  const messageId = String(sent.body.data.results[0].message_id)
  addRecords(postroad, messageId)
  const audience = await fillAudience(postroad)
  await until('live mail to be delivered and counted', async () => {
    const { body } = await postroad.get('/api/v1/analytics', { key })
    return body.data.delivered === 4
  })
  return [
    ...[vouched.id, domain.body.data.id, messageId, sent.body.data.results[1].message_id].map(String),
    String(scheduled.body.data.message_id),
    String(batch.body.data.batch_id),
    ...[BOUNCE, REPORT, `gone@${LIVE_DOMAIN}`, LIVE_DOMAIN],
    ...audience,
  ]
}

/** @returns ids of one contact, list, segment and tag */
async function fillAudience(postroad: TestAppliance): Promise<string[]> {
  const ids: string[] = []
  for (const [path, body] of Object.entries({
    contacts: { email: `ann@${LIVE_DOMAIN}`, first_name: MARK },
    lists: { name: `${MARK} list` },
    segments: { name: `${MARK} segment` },
    tags: { name: `${MARK} tag` },
  }))
    ids.push(String((await postroad.post(`/api/v1/${path}`, body, { key: postroad.key })).body.data.id))
  const [contact, list, , tag] = ids
  for (const path of [`lists/${list}/members`, `tags/${tag}/contacts`])
    await postroad.post(`/api/v1/${path}`, { contact_ids: [contact] }, { key: postroad.key })
  return ids
}

const BOUNCE = '0192f000-0000-7000-8000-0000000b0b0b'
const REPORT = '0192f000-0000-7000-8000-0000000e0e0e'

/** What only comes in by mail. */
function addRecords({ dataDir, workspaceId }: TestAppliance, messageId: string): void {
  const database = new BetterSqlite(join(dataDir, 'postroad.db'))
  try {
    database
      .prepare(
        `insert into bounces (id, workspace_id, message_id, email, type, subtype, cause, scope, smtp_status, diagnostic_code,
           is_sandbox, created_at)
         values (?, ?, ?, ?, 'permanent', 'no_such_mailbox', 'recipient', 'address', '5.1.1', ?, 0, 1)`,
      )
      .run(BOUNCE, workspaceId, messageId, `ann@${LIVE_DOMAIN}`, `smtp; 550 ${MARK}`)
    database
      .prepare(
        `insert into domain_reports (id, kind, domain, org_name, report_id, begin_at, end_at, received_at, summary, records)
         values (?, 'dmarc', ?, ?, 'r1', 1, 2, 3, '{}', '[]')`,
      )
      .run(REPORT, LIVE_DOMAIN, `${MARK} reporter`)
  } finally {
    database.close()
  }
}

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const operations = (await readOperations(postroad.baseUrl)).filter(({ needsKey }) => needsKey)
  const names = await fillLive(postroad)
  return { postroad, operations, names, sandboxKey: await postroad.makeKey('--sandbox') }
}

/** Every way to name something live in this operation's path. */
function namings({ pathParameters }: Operation, names: readonly string[]): (() => string)[] {
  return pathParameters.length === 0 ? [() => ''] : names.map(name => () => name)
}

// proves: Postroad > a sandbox key neither sees nor touches live data
t.test('every route called with a sandbox key leaves live rows unchanged and shows none', async t => {
  const { postroad, operations, names, sandboxKey } = await open(t)
  t.ok(operations.length >= 20)
  const before = readRows(postroad)
  const wanted = [...names, MARK]
  for (const operation of operations)
    for (const valueOf of namings(operation, names)) {
      const { text } = await ask(postroad.baseUrl, usualRequest(operation, valueOf, sandboxKey))
      // What the caller named itself may stand in the words of an error.
      const told = valueOf() === '' ? text : text.replaceAll(valueOf(), '')
      t.same(
        wanted.filter(name => told.includes(name)),
        [],
        operation.name,
      )
    }
  const asLive = { from_email: `shop@${LIVE_DOMAIN}`, to: 'ann@example.com', subject: 'x', text: 'x' }
  t.match(await postroad.send(sandboxKey, asLive), { status: 200 }, 'a verified live domain may be tried out')
  // The same names again in bodies that take names, now that the sandbox has its own records.
  await postroad.post('/api/v1/suppressions', { email: `ann@${LIVE_DOMAIN}` }, { key: sandboxKey })
  await postroad.post('/api/v1/domains', { domain: LIVE_DOMAIN }, { key: sandboxKey })
  const { body: own } = await postroad.get('/api/v1/domains', { key: sandboxKey })
  for (const { id } of own.data as { id: string }[]) {
    const reports = await postroad.get(`/api/v1/domains/${id}/reports`, { key: sandboxKey })
    t.same(reports.body.data, [], 'a domain that anybody may add shows nobody its reports')
    await postroad.delete(`/api/v1/domains/${id}`, { key: sandboxKey })
  }
  await postroad.clock.advance(1_000)
  const after = readRows(postroad)
  const sandboxId = sandboxOf(after)
  // Keys are used by the requests themselves.
  const textOf = (row: object) => JSON.stringify({ ...row, last_used_at: undefined })
  for (const [table, rows] of Object.entries(before)) {
    const kept = new Set((after[table] ?? []).map(textOf))
    for (const row of rows) t.ok(kept.has(textOf(row)), `${table}: ${textOf(row)}`)
    const known = new Set(rows.map(textOf))
    for (const row of after[table] ?? []) {
      const owner = row['workspace_id'] ?? row['owner']
      if (owner === undefined || known.has(textOf(row)) || table === 'api_keys') continue
      t.equal(owner, sandboxId, `${table}: ${textOf(row)}`)
    }
  }
  for (const table of [
    ...['messages', 'message_contents', 'domains', 'suppressions', 'activities', 'events'],
    ...['contacts', 'lists', 'segments', 'tags'],
  ])
    t.ok((after[table]?.length ?? 0) > (before[table]?.length ?? 0), `the sandbox has ${table}`)
})

t.test('a live key does see what the sandbox must not', async t => {
  const { postroad, operations, names } = await open(t)
  let seen = ''
  for (const operation of operations.filter(({ method }) => method === 'GET'))
    for (const valueOf of namings(operation, names))
      seen += (await ask(postroad.baseUrl, usualRequest(operation, valueOf, postroad.key))).text
  for (const name of names) t.ok(seen.includes(name), name)
})

// proves: Postroad > a sandbox key neither sees nor touches live data
t.test('nothing of a sandbox shows to a live key, or to another sandbox', async t => {
  const postroad = await openTestAppliance(t)
  const operations = (await readOperations(postroad.baseUrl)).filter(({ needsKey }) => needsKey)
  const sandboxKey = await postroad.makeKey('--sandbox')
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const keys = { live: postroad.key, other: await postroad.makeKey('--workspace', id, '--sandbox') }
  const mine = { key: sandboxKey }
  const domain = await postroad.post('/api/v1/domains', { domain: 'mine.test' }, mine)
  await postroad.post('/api/v1/suppressions', { email: 'mine@mine.test' }, mine)
  const contact = await postroad.post('/api/v1/contacts', { email: 'ann@mine.test' }, mine)
  const list = await postroad.post('/api/v1/lists', { name: 'mine' }, mine)
  const to = ['mine+1@simulator.test', 'bounced+mine@simulator.test']
  const sent = await postroad.send(sandboxKey, { from_email: 'me@mine.test', subject: 'x', text: 'x', to })
  const bounces = await until('the bounce to be recorded', async () => {
    const { body } = await postroad.get('/api/v1/bounces', mine)
    return body.data.length === 1 && body.data
  })
  const names = [
    ...[domain.body.data.id, sent.body.data.results[0].message_id, bounces[0].id],
    ...[contact.body.data.id, list.body.data.id],
  ].map(String)
  for (const [who, key] of Object.entries(keys))
    for (const operation of operations)
      for (const valueOf of namings(operation, names)) {
        const { text } = await ask(postroad.baseUrl, usualRequest(operation, valueOf, key))
        t.notMatch(text, 'mine', `${operation.name} to ${who}`)
      }
  t.match(
    await postroad.get(`/api/v1/domains/${names[0]}`, mine),
    { status: 200 },
    'and it is all still there',
  )
  t.match(await postroad.get(`/api/v1/email/${names[1]}`, mine), { status: 200 })
})
