/** API keys over HTTP: their own description, rates, windows, limits, revocation. */
import t from 'tap'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const recipients = (count: number) => Array.from({ length: count }, (_, index) => `user${index}@one.test`)
const PERMISSIONS = '/api/v1/api-key/permissions'
const MINUTE = 60_000

/** With the limits that a key has when none are named. */
async function usualKey(postroad: TestAppliance, ...more: string[]) {
  return postroad.json<{ id: string; key: string }>(
    'key',
    'create',
    '--workspace',
    postroad.workspaceId,
    '--name',
    'usual',
    ...more,
  )
}

// proves: Other resources > API key introspection fields name
// proves: Deliverability, domains, analytics, tracking > GET /api-key/permissions; Authentication > 5
// proves: decisions: Accounts and keys > GET /api-key/permissions -> {name string
t.test('a key can read its name, type, permissions, rate limit and sandbox flag', async t => {
  const postroad = await openTestAppliance(t)
  const told = async (key: string) => (await postroad.get(PERMISSIONS, { key })).body
  t.same(await told((await usualKey(postroad)).key), {
    data: { name: 'usual', type: 'full_access', permissions: ['*'], rate_limit: 100, is_sandbox: false },
  })
  const sending = await usualKey(postroad, '--permissions', 'sending_access')
  t.same((await told(sending.key)).data, {
    name: 'usual',
    type: 'sending_access',
    permissions: ['email:send', 'email:read', 'smtp:send'],
    rate_limit: 100,
    is_sandbox: false,
  })
  const custom = await usualKey(postroad, '--permissions', 'domains:read', '--rate-limit', '7', '--sandbox')
  t.same((await told(custom.key)).data, {
    name: 'usual',
    type: 'custom',
    permissions: ['domains:read'],
    rate_limit: 7,
    is_sandbox: true,
  })
  t.match((await told(await postroad.makeKey())).data, { rate_limit: 0 }, 'none')
})

// proves: Authentication > 3; decisions: Accounts and keys > Key prefixes ts_live_ and ts_test_
t.test('live and sandbox keys have different prefixes', async t => {
  const postroad = await openTestAppliance(t)
  t.match((await usualKey(postroad)).key, /^ts_live_[0-9A-Za-z]{32,}$/)
  t.match((await usualKey(postroad, '--sandbox')).key, /^ts_test_[0-9A-Za-z]{32,}$/)
})

// proves: Authentication > 4
t.test('a revoked key is unauthorized', async t => {
  const postroad = await openTestAppliance(t)
  const { id, key } = await usualKey(postroad)
  t.match(await postroad.get(PERMISSIONS, { key }), { status: 200 })
  await postroad.json('key', 'revoke', id)
  await postroad.clock.advance(1_000)
  const refused = await postroad.get(PERMISSIONS, { key })
  t.match(refused, { status: 401, body: { error: { code: 'unauthorized' } } })
  t.equal(refused.headers.get('WWW-Authenticate'), 'Bearer')
  t.match(await postroad.send(key, good), { status: 401 })
})

// proves: Errors > 429 | rate_limited | rate_limit_exceeded; Limits > Rate-limit response headers
// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
// at and past limit: Limits > Requests per API key
t.test('a new key has 100 requests in any minute, counted down in every response', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = await usualKey(postroad)
  const ask = () => postroad.get(PERMISSIONS, { key })
  for (let count = 1; count <= 100; count += 1) {
    // Ten at the first moment, the others half a minute later.
    if (count === 11) await postroad.clock.advance(MINUTE / 2)
    const { status, headers } = await ask()
    t.same(
      [status, headers.get('X-RateLimit-Limit'), headers.get('X-RateLimit-Remaining')],
      [200, '100', String(100 - count)],
    )
  }
  const refused = await ask()
  t.match(refused, { status: 429, body: { error: { code: 'rate_limited' } } })
  t.equal(refused.headers.get('Retry-After'), '30')
  t.equal(refused.headers.get('X-RateLimit-Reset'), '2026-01-05T10:01:00.000Z')
  await postroad.clock.advance(MINUTE / 2)
  const statuses: number[] = []
  for (let count = 0; count < 11; count += 1) statuses.push((await ask()).status)
  t.same(statuses, [...Array.from({ length: 10 }, () => 200), 429], 'the window slides: ten have left it')
  t.match(
    await postroad.get(PERMISSIONS, { key: postroad.key }),
    { status: 200 },
    'other keys are unaffected',
  )
})

// at and past limit: Limits > Emails per API key
t.test('a new key has 100 emails per minute, independent of its requests', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = await usualKey(postroad)
  t.match(await postroad.send(key, { ...good, to: recipients(100) }), {
    status: 200,
    body: { data: { sent: 100 } },
  })
  const refused = await postroad.send(key, good)
  t.match(refused, {
    status: 429,
    body: { error: { code: 'rate_limited', message: /100 mails per minute/ } },
  })
  t.match(refused.headers.get('Retry-After'), /^([1-9]|[1-5]\d|60)$/)
  t.equal(refused.headers.get('X-RateLimit-Remaining'), '0', 'the window of mails is shown, which is used up')
  await postroad.clock.advance(Number(refused.headers.get('Retry-After')) * 1_000)
  t.match(await postroad.send(key, good), { status: 200 })
})

// proves: decisions: Accounts and keys > Workspace settings name default_from_email default_from_name
// at and past limit: Postroad > hourly and daily emails of a workspace
t.test('a new workspace has 1,000 emails per hour and 10,000 per day', async t => {
  const postroad = await openTestAppliance(t)
  const made = await postroad.json<{ id: string }>('workspace', 'create', 'new')
  t.match(made, { hourly_limit: 1_000, daily_limit: 10_000 })
  const key = await postroad.makeKey('--workspace', made.id)
  // Counted when they are accepted; so late that nothing is delivered here.
  const later = { ...good, send_at: '2026-01-08T09:00:00Z' }
  for (let count = 0; count < 10; count += 1)
    t.match(await postroad.send(key, { ...later, to: recipients(100) }), { status: 202 })
  t.match(await postroad.send(key, later), {
    status: 403,
    body: { error: { code: 'limit_reached', message: /1000 mails per hour/ } },
  })
  t.match(await postroad.send(postroad.key, good), { status: 200 }, 'other workspaces are unaffected')
})

// proves: Errors > 400
t.test('of several faults the first in the order 401, 429, 403, 400, rule, limit is returned', async t => {
  const postroad = await openTestAppliance(t)
  const codeOf = async (key: string, body: unknown) => {
    const { status, body: answer } = await postroad.send(key, body)
    return `${status} ${answer.error?.code ?? 'success'}`
  }
  const reader = await postroad.makeKey('--permissions', 'email:read', '--rate-limit', '1')
  t.equal(await codeOf('ts_live_none', '{"broken'), '401 unauthorized')
  t.equal(await codeOf(reader, '{"broken'), '403 forbidden')
  t.equal(await codeOf(reader, '{"broken'), '429 rate_limited')
  const { key } = postroad
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=1')
  t.equal(await codeOf(key, good), '200 success')
  t.equal(await codeOf(key, { ...good, from_name: 'a\nb', text: '' }), '400 validation_error')
  t.equal(await codeOf(key, { ...good, text: '' }), '400 no_content')
  t.equal(await codeOf(key, { ...good, send_at: '2020-01-01T00:00:00Z' }), '400 invalid_schedule')
  t.equal(await codeOf(key, good), '403 limit_reached')
})

// proves: Authentication > 1; Errors > 401 | unauthorized
t.test('the Authorization scheme is case-insensitive, and malformed values are refused', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const status = async (authorization: string) =>
    (await postroad.get(PERMISSIONS, { headers: { Authorization: authorization } })).status
  for (const right of [`Bearer ${key}`, `bearer ${key}`, `BEARER  ${key}`]) t.equal(await status(right), 200)
  for (const wrong of [
    key,
    `Basic ${key}`,
    `Bearer`,
    `Bearer ${key.toLowerCase()}`,
    `Bearer ${key} ${key}`,
    `Bearer${key}`,
  ])
    t.equal(await status(wrong), 401, wrong.replaceAll(key, 'KEY'))
})

t.test('changes by another process to keys, workspaces and limits apply from the next request', async t => {
  const postroad = await openTestAppliance(t)
  const { id, key } = await usualKey(postroad)
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const orphan = await postroad.makeKey('--workspace', other)
  for (const known of [key, orphan]) t.match(await postroad.get(PERMISSIONS, { key: known }), { status: 200 })
  // The clock of these tests stands still: nothing is forgotten by its age.
  await postroad.run('key', 'revoke', id)
  t.match(await postroad.get(PERMISSIONS, { key }), { status: 401 })
  await postroad.run('workspace', 'remove', other, '--yes')
  t.match(await postroad.get(PERMISSIONS, { key: orphan }), {
    status: 404,
    body: { error: { code: 'workspace_not_found' } },
  })
})

t.test('setting the clock back neither restores a revoked key nor grants a rate twice', async t => {
  const postroad = await openTestAppliance(t)
  const { id, key } = await usualKey(postroad, '--rate-limit', '2')
  await postroad.get(PERMISSIONS, { key })
  await postroad.get(PERMISSIONS, { key })
  for (const step of [-2 * 60 * MINUTE, 4 * 60 * MINUTE]) {
    postroad.clock.jump(step)
    t.match(await postroad.get(PERMISSIONS, { key }), { status: 429 })
  }
  await postroad.run('key', 'revoke', id)
  postroad.clock.jump(-4 * 60 * MINUTE)
  t.match(await postroad.get(PERMISSIONS, { key }), { status: 401 })
})
