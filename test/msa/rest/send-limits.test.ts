/** Keys, permissions, rates, limits and the sandbox. */
import t from 'tap'
import { openTestAppliance } from '../../support/program/appliance.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const recipients = (count: number) => Array.from({ length: count }, (_, index) => `user${index}@one.test`)

// proves: Authentication > 1; Errors > 401
// answers: POST /email/send: unauthorized
t.test('a request without a valid key is refused before anything else', async t => {
  const postroad = await openTestAppliance(t)
  const before = postroad.rowCounts()
  for (const headers of [
    {},
    { Authorization: postroad.key },
    { Authorization: `Basic ${postroad.key}` },
    { Authorization: 'Bearer ' },
    { Authorization: `Bearer ${postroad.key}x` },
    { Authorization: `Bearer ts_live_${'x'.repeat(40)}` },
  ]) {
    const answer = await postroad.post('/api/v1/email/send', '{"broken', { headers })
    t.match(answer, { status: 401, body: { error: { code: 'unauthorized' } } }, JSON.stringify(headers))
    t.equal(answer.headers.get('WWW-Authenticate'), 'Bearer')
  }
  t.same(postroad.rowCounts(), before)
  t.match(await postroad.send(postroad.key, good), { status: 200 })
})

// proves: Authentication > 4
// answers: POST /email/send: workspace_not_found
t.test('a key of a removed workspace gets an error that says so', async t => {
  const postroad = await openTestAppliance(t)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'short-lived')
  const key = await postroad.makeKey('--workspace', id)
  await postroad.json('workspace', 'remove', id, '--yes')
  t.match(await postroad.send(key, good), { status: 404, body: { error: { code: 'workspace_not_found' } } })
})

// proves: Authentication > 4; Errors > 403
// proves: decisions: Accounts and keys > Permissions are resourceaction emailsend emailread
// answers: POST /email/send: forbidden
t.test('a key may do what its permissions say and nothing else', async t => {
  const postroad = await openTestAppliance(t)
  const sender = await postroad.makeKey('--permissions', 'email:send')
  const reader = await postroad.makeKey('--permissions', 'email:read')
  const forbidden = { status: 403, body: { error: { code: 'forbidden' } } }
  const { status, body } = await postroad.send(sender, good)
  t.equal(status, 200)
  const id = String(body.data.results[0].message_id)
  const before = postroad.rowCounts()['messages']
  t.match(await postroad.send(reader, good), forbidden)
  t.match(await postroad.send(reader, '{"broken'), forbidden, 'before the body is looked at')
  t.equal(postroad.rowCounts()['messages'], before)
  for (const path of [`/api/v1/email/${id}`, `/api/v1/email/${id}/status`]) {
    t.match(await postroad.get(path, { key: reader }), { status: 200 })
    t.match(await postroad.get(path, { key: sender }), forbidden)
  }
})

// proves: Errors > 429 | rate_limit_exceeded; decisions: Accounts and keys > Each key has rate_limit (requests/min
// answers: POST /email/send: rate_limited
t.test('requests beyond the rate of a key are refused before their body is looked at', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--rate-limit', '2')
  for (const remaining of ['1', '0']) {
    const answer = await postroad.send(key, good)
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('X-RateLimit-Limit'), '2')
    t.equal(answer.headers.get('X-RateLimit-Remaining'), remaining)
  }
  const refused = await postroad.send(key, '{"broken')
  t.match(refused, { status: 429, body: { error: { code: 'rate_limited' } } })
  const seconds = Number(refused.headers.get('Retry-After'))
  t.ok(seconds >= 1 && seconds <= 60)
  await postroad.clock.advance(seconds * 1_000)
  t.match(await postroad.send(key, good), { status: 200 }, 'after Retry-After')
})

// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
t.test("recipients beyond a key's email rate are refused whole", async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--email-rate-limit', '3')
  t.match(await postroad.send(key, { ...good, to: recipients(2) }), { status: 200 })
  const before = postroad.rowCounts()['messages']
  const refused = await postroad.send(key, { ...good, to: recipients(2) })
  t.match(refused, { status: 429, body: { error: { code: 'rate_limited' } } })
  t.equal(postroad.rowCounts()['messages'], before)
  t.match(await postroad.send(key, good), { status: 200 }, 'one still fits')
  const seconds = Number(refused.headers.get('Retry-After'))
  t.ok(seconds >= 1 && seconds <= 60)
  await postroad.clock.advance(seconds * 1_000)
  t.match(await postroad.send(key, { ...good, to: recipients(2) }), { status: 200 }, 'after Retry-After')
})

// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
t.test('a request that no minute of its key has room for is refused for good, and told why', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--email-rate-limit', '3')
  const refused = await postroad.send(key, { ...good, to: recipients(3), cc: 'carl@one.test' })
  t.match(refused, {
    status: 400,
    body: { error: { code: 'validation_error', path: 'to', message: /4 recipients.*3 mails per minute/ } },
  })
  t.equal(refused.headers.get('Retry-After'), null)
  t.match(await postroad.send(key, { ...good, to: recipients(3) }), { status: 200 }, 'and used nothing up')
})

// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
t.test('who is skipped uses nothing of the email rate up', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--email-rate-limit', '3')
  await postroad.json('suppress', 'add', 'gone@one.test', '--workspace', postroad.workspaceId)
  const skipped = ['gone@one.test', 'nobody', 'USER0@one.test', 'x']
  t.match(await postroad.send(key, { ...good, to: [...recipients(2), ...skipped] }), {
    status: 200,
    body: { data: { sent: 2, skipped: 4 } },
  })
  t.match(await postroad.send(key, good), { status: 200 }, 'the third')
  const refused = await postroad.send(key, good)
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('X-RateLimit-Limit'), '3', 'the window that is used up is shown')
  t.equal(refused.headers.get('X-RateLimit-Remaining'), '0')
  t.equal(refused.headers.get('X-RateLimit-Reset'), '2026-01-05T10:01:00.000Z')
})

for (const [limit, window, windowMs] of [
  ['hourly_limit', 'hour', 3_600_000],
  ['daily_limit', 'day', 86_400_000],
] as const)
  // proves: Email > 7; Errors > 403 | limit_reached
  // answers: POST /email/send: limit_reached
  // at and past limit: Postroad > hourly and daily emails of a workspace
  t.test(`a request that would cross the ${limit} is refused whole`, async t => {
    const postroad = await openTestAppliance(t)
    const { key } = postroad
    await postroad.json(
      'workspace',
      'set',
      postroad.workspaceId,
      'hourly_limit=0',
      'daily_limit=0',
      `${limit}=3`,
    )
    const twice = { ...good, to: ['bob@two.test', 'BOB@two.test', 'nobody'] }
    t.match(await postroad.send(key, twice), { status: 200 }, 'only one of these counts')
    t.match(await postroad.send(key, good), { status: 200 })
    const before = postroad.rowCounts()['messages']
    const crossing = await postroad.send(key, { ...good, to: recipients(2) })
    const next = new Date(
      Date.parse('2026-01-05T10:00:00Z') - (Date.parse('2026-01-05T10:00:00Z') % windowMs) + windowMs,
    )
    const message = new RegExp(`3 mails per ${window}; 1 .* begins at ${next.toISOString()}`)
    t.match(crossing, { status: 403, body: { error: { code: 'limit_reached', message } } })
    const seconds = (next.getTime() - Date.parse('2026-01-05T10:00:00Z')) / 1_000
    t.equal(crossing.headers.get('Retry-After'), String(seconds), 'when the next window begins')
    const never = await postroad.send(key, { ...good, to: recipients(4) })
    t.match(never, { status: 403, body: { error: { code: 'limit_reached', message: /this request has 4/ } } })
    t.equal(never.headers.get('Retry-After'), null, 'more than a whole window')
    t.equal(postroad.rowCounts()['messages'], before)
    t.match(await postroad.send(key, good), { status: 200 }, 'the last one')
    t.match(await postroad.send(key, good), { status: 403, body: { error: { code: 'limit_reached' } } })
    t.match(
      await postroad.send(key, { ...good, text: '' }),
      { status: 400, body: { error: { code: 'no_content' } } },
      'the rules of the request come before the limits',
    )
    postroad.clock.skip(windowMs)
    postroad.clock.skip(windowMs)
    t.match(await postroad.send(key, { ...good, to: recipients(3) }), { status: 200 }, 'in the next one')
  })

// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
t.test('a request refused by the limit of its workspace uses nothing of its key up', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--email-rate-limit', '3')
  const limited = (limit: number) =>
    postroad.json('workspace', 'set', postroad.workspaceId, `hourly_limit=${limit}`)
  await limited(1)
  t.match(await postroad.send(key, { ...good, to: recipients(3) }), { status: 403 })
  await limited(3)
  t.match(await postroad.send(key, { ...good, to: recipients(3) }), { status: 200 })
})

for (const [name, status, code] of [
  ['the rate of a key', 429, 'rate_limited'],
  ['the email rate of a key', 429, 'rate_limited'],
  ['the hourly limit', 403, 'limit_reached'],
  ['the daily limit', 403, 'limit_reached'],
] as const)
  // proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
  // past limit: Postroad > hourly and daily emails of a workspace
  t.test(`of fifty sends at once no more pass than ${name} allows`, async t => {
    const postroad = await openTestAppliance(t)
    const settings = {
      'the rate of a key': () => postroad.makeKey('--rate-limit', '7'),
      'the email rate of a key': () => postroad.makeKey('--email-rate-limit', '7'),
      'the hourly limit': () => limitedKey('hourly_limit=7'),
      'the daily limit': () => limitedKey('daily_limit=7'),
    }
    const limitedKey = async (setting: string) => {
      await postroad.json('workspace', 'set', postroad.workspaceId, setting)
      return postroad.key
    }
    const key = await settings[name]()
    const answers = await Promise.all(Array.from({ length: 50 }, () => postroad.send(key, good)))
    t.equal(answers.filter(answer => answer.status === 200).length, 7)
    t.equal(answers.filter(answer => answer.status === status && answer.body.error.code === code).length, 43)
    t.equal(postroad.rowCounts()['messages'], 7)
  })

// proves: decisions: Accounts and keys > Workspace settings name default_from_email default_from_name
// at limit: Postroad > hourly and daily emails of a workspace
t.test('a limit of 0 means unlimited', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=0', 'daily_limit=0')
  for (let round = 0; round < 11; round += 1)
    t.match(await postroad.send(key, { ...good, to: recipients(100) }), { status: 200 })
})

// proves: What the service does > A sandbox key mode produces; Email > 8
// proves: decisions: Email > Sandbox each workspace has a
t.test('with a sandbox key mail is stored and goes nowhere', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox')
  t.match(key, /^ts_test_/)
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=1')
  const { status, body } = await postroad.send(key, { ...good, to: recipients(5) })
  t.equal(status, 200)
  t.match(body.data, { sent: 5, skipped: 0, total: 5 })
  const id = String(body.data.results[0].message_id)
  t.match((await postroad.get(`/api/v1/email/${id}`, { key })).body.data, {
    message_id: id,
    status: 'sent',
    is_sandbox: true,
    attempts: 0,
    trace: [],
  })
  t.match(postroad.rowCounts(), { messages: 5, queue: 0, attempts: 0, captured_mails: 0, sending_usage: 0 })
  t.match(await postroad.send(key, { ...good, text: '' }), {
    status: 400,
    body: { error: { code: 'no_content' } },
  })
  t.match(await postroad.send(postroad.key, good), { status: 200 }, 'no quota was used')
})
