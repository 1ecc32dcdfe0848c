/** What a key is told of itself, and how far it comes, over HTTP: rates of a new key, windows, limits, revocation. */
import t from 'tap'
import { openTestAppliance, type TestAppliance } from '../support/appliance.js'

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

t.test('a key is told its name, type, permissions, rate and whether it is for the sandbox', async t => {
  const postroad = await openTestAppliance(t)
  const told = async (key: string) => (await postroad.get(PERMISSIONS, { key })).body
  t.same(await told((await usualKey(postroad)).key), {
    data: { name: 'usual', type: 'full_access', permissions: ['*'], rate_limit: 100, is_sandbox: false },
  })
  const sending = await usualKey(postroad, '--permissions', 'email:send,email:read,smtp:send')
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

t.test('live and sandbox keys are told apart by their beginning', async t => {
  const postroad = await openTestAppliance(t)
  t.match((await usualKey(postroad)).key, /^ts_live_[0-9A-Za-z]{32,}$/)
  t.match((await usualKey(postroad, '--sandbox')).key, /^ts_test_[0-9A-Za-z]{32,}$/)
})

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

t.test('a new key has a hundred requests in any minute, and is told of each', async t => {
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
  t.match(await postroad.get(PERMISSIONS, { key: postroad.key }), { status: 200 }, 'other keys go on')
})

t.test('a new key has a hundred mails a minute, whatever its requests', async t => {
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
  t.equal(refused.headers.get('X-RateLimit-Remaining'), '98', 'requests are left')
  await postroad.clock.advance(Number(refused.headers.get('Retry-After')) * 1_000)
  t.match(await postroad.send(key, good), { status: 200 })
})

t.test('a new workspace has 1,000 mails an hour and 10,000 a day', async t => {
  const postroad = await openTestAppliance(t)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'new')
  const key = await postroad.makeKey('--workspace', id)
  // Counted when they are accepted; so late that nothing is delivered here.
  const later = { ...good, send_at: '2026-01-08T09:00:00Z' }
  const hundred = () => postroad.send(key, { ...later, to: recipients(100) })
  for (let hour = 0; hour < 10; hour += 1) {
    for (let count = 0; count < 10; count += 1) t.match(await hundred(), { status: 202 })
    t.match(await postroad.send(key, later), {
      status: 403,
      body: { error: { code: 'limit_reached', message: hour < 9 ? /1000 mails per hour/ : /mails per/ } },
    })
    await postroad.clock.advance(60 * MINUTE)
  }
  t.match(await postroad.send(key, later), {
    status: 403,
    body: { error: { code: 'limit_reached', message: /10000 mails per day/ } },
  })
})

t.test(
  'the parts of a right Authorization may be written in any case, those of a wrong one are refused',
  async t => {
    const postroad = await openTestAppliance(t)
    const { key } = postroad
    const status = async (authorization: string) =>
      (await postroad.get(PERMISSIONS, { headers: { Authorization: authorization } })).status
    for (const right of [`Bearer ${key}`, `bearer ${key}`, `BEARER  ${key}`])
      t.equal(await status(right), 200)
    for (const wrong of [
      key,
      `Basic ${key}`,
      `Bearer`,
      `Bearer ${key.toLowerCase()}`,
      `Bearer ${key} ${key}`,
      `Bearer${key}`,
    ])
      t.equal(await status(wrong), 401, wrong.replaceAll(key, 'KEY'))
  },
)
