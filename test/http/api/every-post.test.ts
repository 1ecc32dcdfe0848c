/** What holds for every POST of the running appliance: an Idempotency-Key is accepted, and a 201 says where it leads. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t, { type Test } from 'tap'
import {
  ask,
  pathWith,
  readOperations,
  usualRequest,
  type Operation,
} from '../../support/api/api-document.js'
import { openFeedServer, rss } from '../../feeds/feed-server.js'
import { openTestAppliance } from '../../support/program/appliance.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

/** @param sender a verified domain */
async function open(t: Test, sender = 'example.com') {
  const feeds = await openFeedServer(t)
  feeds.answer('/feed', { body: rss(['one']) })
  const url = `${feeds.url}/feed`
  const appliance = await openTestAppliance(t, {
    env: {
      POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8',
      POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0',
      POSTROAD_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
  })
  const key = await appliance.makeKey('--rate-limit', '0')
  await appliance.json('domain', 'add', sender, '--vouch', '--workspace', appliance.workspaceId)
  const operations = (await readOperations(appliance.baseUrl)).filter(
    ({ needsKey, method }) => needsKey && method === 'POST',
  )
  const made = async (path: string, body: object): Promise<string> => {
    const answer = await appliance.post(`/api/v1/${path}`, body, { key })
    t.equal(answer.status, 201, path)
    return String(answer.body.data.id)
  }
  const contact = await made('contacts', { email: 'first@example.net' })
  const template = await made('templates', { name: 'First', html: '<p>Hello</p>' })
  const list = await made('lists', { name: 'First' })
  const conditions = { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] }
  const ids: Record<string, string> = {
    contacts: contact,
    templates: template,
    lists: list,
    tags: await made('tags', { name: 'first' }),
    segments: await made('segments', { name: 'First', conditions }),
    automations: await made('automations', { name: 'First', trigger_type: 'manual' }),
    campaigns: await made('campaigns', { name: 'First', subject: 'x', template_id: template, list_id: list }),
    feeds: await made('feeds', {
      ...{ name: 'First', url, subject: 'x', template_id: template, list_id: list },
      schedule: { every: 'daily', at: '09:00' },
    }),
    webhooks: await made('webhooks/triggers', { targetUrl: 'https://hooks.example/', event: 'email.sent' }),
    domains: await made('domains', { domain: 'first.example' }),
  }
  const valuesOf =
    ({ path }: Operation) =>
    (name: string) =>
      name === 'n' ? '1' : name === 'id' ? (ids[path.split('/')[3] ?? ''] ?? MADE_UP) : MADE_UP
  /** @param idempotencyKey none where undefined */
  const post = (operation: Operation, idempotencyKey?: string) => {
    const usual = usualRequest(operation, valuesOf(operation), key)
    const body = usual.body
      ?.toString()
      .replace('https://blog.example/feed.xml', url)
      .replace(/("contact_ids?":\s*\[?)"[^"]*"/g, `$1"${contact}"`)
      .replace(/("template_id":\s*)"[^"]*"/g, `$1"${template}"`)
      .replace(/("list_ids?":\s*\[?)"[^"]*"/g, `$1"${list}"`)
    const headers = { ...usual.headers }
    if (idempotencyKey !== undefined) headers['Idempotency-Key'] = idempotencyKey
    return ask(appliance.baseUrl, { ...usual, body, headers })
  }
  const inDatabase = (text: string, ...values: readonly unknown[]) => {
    const database = new BetterSqlite(join(appliance.dataDir, 'postroad.db'))
    try {
      return /^select/.test(text)
        ? database.prepare(text).all(...values)
        : [database.prepare(text).run(...values)]
    } finally {
      database.close()
    }
  }
  /** As what a request of this key is stored under. */
  const claimOf = (operation: Operation, idempotencyKey: string) =>
    createHash('sha256')
      .update(
        JSON.stringify([
          ...[appliance.workspaceId, false, 'POST'],
          ...[pathWith(operation, valuesOf(operation)), idempotencyKey],
        ]),
      )
      .digest('base64url')
  return { ...appliance, operations, key, post, inDatabase, claimOf }
}

const isReadOnly = ({ parameters }: Operation) =>
  parameters.some(({ name, description }) => name === 'Idempotency-Key' && /ignored/.test(description ?? ''))

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
t.test('every POST accepts an Idempotency-Key, and a repeat gets the first answer', async t => {
  const { operations, post } = await open(t)
  const succeeded: string[] = []
  for (const operation of operations) {
    const { name } = operation
    t.ok(
      operation.parameters.some(one => one.in === 'header' && one.name === 'Idempotency-Key'),
      `${name} describes it`,
    )
    const refused = await post(operation, 'x'.repeat(256))
    t.match([refused.status, refused.text], [400, /"path":"Idempotency-Key"/], name)
    const first = await post(operation, 'the same')
    if (first.status >= 300) {
      t.equal(first.headers.get('x-idempotency-status'), null, name)
      continue
    }
    t.equal(first.headers.get('x-idempotency-status'), 'new', name)
    const again = await post(operation, 'the same')
    t.same([again.status, again.headers.get('location')], [first.status, first.headers.get('location')], name)
    t.equal(again.headers.get('x-idempotency-status'), isReadOnly(operation) ? 'new' : 'cached', name)
    if (!isReadOnly(operation)) t.equal(again.text, first.text, name)
    succeeded.push(name)
  }
  t.ok(succeeded.length > 25, `only ${succeeded.join(', ')} succeeded`)
})

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
// answers: posting: conflict, idempotency_conflict
t.test('a repeat of an interrupted POST is refused, and so is one with another body', async t => {
  const { operations, post, inDatabase, claimOf, clock } = await open(t)
  let interrupted = 0
  for (const operation of operations.filter(one => !isReadOnly(one))) {
    const { name } = operation
    const { status } = await post(operation, 'key')
    const id = claimOf(operation, 'key')
    if (status < 300) {
      // As a process leaves it that dies before it has stored its answer.
      inDatabase('update kept_answers set status = 0 where id = ?', id)
      const refused = await post(operation, 'key')
      t.match([refused.status, JSON.parse(refused.text)], [409, { error: { code: 'conflict' } }], name)
      interrupted += 1
    }
    inDatabase(
      `insert into kept_answers (id, body_hash, status, value, created_at) values (?, 'other', 200, '{}', ?)
       on conflict do update set body_hash = 'other'`,
      ...[id, clock.now()],
    )
    const other = await post(operation, 'key')
    t.match([other.status, JSON.parse(other.text)], [409, { error: { code: 'idempotency_conflict' } }], name)
  }
  t.ok(interrupted > 25)
})

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
t.test('an answer with a secret is repeated, and stored sealed', async t => {
  const { operations, post, inDatabase, claimOf } = await open(t)
  for (const operation of operations.filter(({ path }) => /triggers|rotate-secret/.test(path))) {
    const first = await post(operation, 'key')
    t.match(first.text, /"secret":"whsec_/)
    t.equal((await post(operation, 'key')).text, first.text)
    const stored = JSON.stringify(
      inDatabase('select value from kept_answers where id = ?', claimOf(operation, 'key')),
    )
    t.match(stored, /sealed:/)
    t.notMatch(stored, /whsec_/)
  }
})

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
// operations: GET /automations/{id}/steps/{stepId}
t.test('every 201 has a Location, where what was created can be read', async t => {
  // The example adds example.com.
  const { operations, post, baseUrl, key, inDatabase } = await open(t, 'sender.example')
  // Only a campaign that has started can be resent.
  inDatabase('update campaigns set started_at = created_at')
  const creating = operations.filter(({ responses }) => '201' in responses)
  t.ok(creating.length > 12)
  for (const operation of creating) {
    const { status, headers, text } = await post(operation)
    t.equal(status, 201, `${operation.name}: ${text}`)
    t.ok('Location' in (operation.responses['201']?.headers ?? {}), `${operation.name} describes it`)
    const location = headers.get('location') ?? ''
    t.match(location, /^\/api\/v1\//, operation.name)
    t.equal((await ask(baseUrl, { method: 'GET', path: location, key })).status, 200, location)
  }
})
