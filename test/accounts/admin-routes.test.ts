/** Workspaces, keys, login locks and the activity log in the admin API, for operators with different roles. */
import t from 'tap'
import { LoginGuard } from '../../src/accounts/login-guard.js'
import { fail } from '../support/logins.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'

const ADMIN = '/api/admin/v1'

t.test('an operator sees and changes only workspaces in which they have a role', async t => {
  const postroad = await openTestAppliance(t)
  const owner = await tokenWith(postroad, 'owner')
  const { body: made } = await postroad.post(
    `${ADMIN}/workspaces`,
    { name: 'Shop', hourly_limit: 500 },
    { key: owner },
  )
  const { id } = made.data
  t.match(made.data, { name: 'Shop', hourly_limit: 500, daily_limit: 10_000 })
  const key = await tokenWith(postroad, [{ workspaceId: id, role: 'operator' }])
  const { body: listed } = await postroad.get(`${ADMIN}/workspaces`, { key })
  t.match(listed, { data: [{ id }], pagination: { total: 1 } })
  t.match((await postroad.get(`${ADMIN}/workspaces`, { key: owner })).body, { pagination: { total: 2 } })
  const path = `${ADMIN}/workspaces/${id}`
  t.match(await postroad.patch(path, { timezone: 'Europe/Berlin' }, { key }), { status: 200 })
  t.match(await postroad.patch(path, { timezone: 'Mars/Olympus' }, { key }), {
    status: 400,
    body: { error: { path: 'timezone' } },
  })
  t.match(await postroad.patch(path, { name: 'DEFAULT' }, { key }), {
    status: 409,
    body: { error: { code: 'duplicate' } },
  })
  const other = `${ADMIN}/workspaces/${postroad.workspaceId}`
  t.match(await postroad.get(other, { key }), { status: 404 })
  t.match(await postroad.patch(other, { name: 'Mine' }, { key }), { status: 404 })
  t.match(await postroad.post(`${ADMIN}/workspaces`, { name: 'More' }, { key }), { status: 403 })
})

t.test('a workspace is removed and restored through the API, with its name free meanwhile', async t => {
  const postroad = await openTestAppliance(t)
  const key = await tokenWith(postroad, 'owner')
  const path = `${ADMIN}/workspaces/${postroad.workspaceId}`
  t.match(await postroad.delete(path, { key }), { status: 200, body: { data: { success: true, held: 0 } } })
  t.match(await postroad.delete(path, { key }), { status: 404 })
  t.match(await postroad.get(path, { key }), { status: 404 })
  t.match(await postroad.get(`${ADMIN}/workspaces?removed=true`, { key }), {
    body: { data: [{ id: postroad.workspaceId, removed_at: /Z$/ }] },
  })
  const { body } = await postroad.post(`${ADMIN}/workspaces`, { name: 'default' }, { key })
  t.match(await postroad.post(`${path}/restore`, {}, { key }), { status: 409 })
  await postroad.patch(`${ADMIN}/workspaces/${body.data.id}`, { name: 'second' }, { key })
  t.match(await postroad.post(`${path}/restore`, {}, { key }), {
    status: 200,
    body: { data: { name: 'default' } },
  })
})

t.test('of two operators who change a workspace they saw alike, the second gets a conflict', async t => {
  const postroad = await openTestAppliance(t)
  const key = await tokenWith(postroad, 'owner')
  const path = `${ADMIN}/workspaces/${postroad.workspaceId}`
  const call = async (method: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${postroad.baseUrl}${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: response.status, etag: response.headers.get('etag') ?? '', text: await response.text() }
  }
  const { etag } = await call('GET')
  t.equal((await call('GET', undefined, { 'If-None-Match': etag })).status, 304)
  const changed = await call('PATCH', { hourly_limit: 50 }, { 'If-Match': etag })
  t.equal(changed.status, 200)
  t.match(await call('PATCH', { hourly_limit: 70 }, { 'If-Match': etag }), {
    status: 412,
    text: /precondition_failed/,
  })
  t.match(await call('DELETE', undefined, { 'If-Match': etag }), { status: 412 })
  t.match(await call('GET'), { etag: changed.etag, text: /"hourly_limit":50/ })
  t.match(await call('PATCH', { hourly_limit: 70 }, { 'If-Match': changed.etag }), { status: 200 })
  t.match(await call('PATCH', { hourly_limit: 80 }), { status: 200 }, 'a script need not send If-Match')
})

t.test('one entry of the activity log is read by those who may see its workspace', async t => {
  const postroad = await openTestAppliance(t)
  const owner = await tokenWith(postroad, 'owner')
  const member = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'viewer' }])
  const { id: otherId } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await tokenWith(postroad, [{ workspaceId: otherId, role: 'owner' }])
  await postroad.post('/api/v1/suppressions', { email: 'ann@x.example' }, { key: postroad.key })
  const { body } = await postroad.get(`${ADMIN}/activity?action=suppression.added`, { key: owner })
  const [entry] = body.data
  const path = `${ADMIN}/activity/${entry.id}`
  t.match(await postroad.get(path, { key: owner }), { status: 200, body: { data: entry } })
  t.match(await postroad.get(path, { key: member }), { status: 200, body: { data: entry } })
  t.match(await postroad.get(path, { key: stranger }), { status: 404 })
  const made = (await postroad.get(`${ADMIN}/activity?action=operator.created`, { key: owner })).body.data
  const own = made.find((one: { workspace_id: string | null }) => one.workspace_id === null)
  t.match(await postroad.get(`${ADMIN}/activity/${own.id}`, { key: owner }), { status: 200 })
  t.match(
    await postroad.get(`${ADMIN}/activity/${own.id}`, { key: member }),
    { status: 404 },
    'of the appliance',
  )
  for (const id of ['999999999', '0', '1e3', 'x', '99999999999999999999'])
    t.match(await postroad.get(`${ADMIN}/activity/${id}`, { key: owner }), { status: 404 }, id)
})

t.test('keys are managed in their workspace alone, and shown once', async t => {
  const postroad = await openTestAppliance(t)
  const key = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'operator' }])
  const stranger = await tokenWith(postroad, [
    { workspaceId: (await postroad.json<{ id: string }>('workspace', 'create', 'other')).id, role: 'owner' },
  ])
  const path = `${ADMIN}/workspaces/${postroad.workspaceId}/keys`
  const made = await postroad.post(path, { name: 'shop', permissions: ['email:read'] }, { key })
  t.match(made, {
    status: 201,
    body: { data: { key: /^ts_live_/, hint: /^ts_live_\.\.\./, type: 'custom' } },
  })
  const { id, key: secret } = made.body.data
  const one = `${ADMIN}/keys/${id}`
  t.match(await postroad.get(one, { key: stranger }), { status: 404 })
  t.match(await postroad.patch(one, { rate_limit: 5 }, { key: stranger }), { status: 404 })
  t.match(await postroad.delete(one, { key: stranger }), { status: 404 })
  t.match(await postroad.patch(one, { rate_limit: 5 }, { key }), { body: { data: { rate_limit: 5 } } })
  const listed = await postroad.get(path, { key })
  t.ok(listed.body.data.some((found: { id: string }) => found.id === id))
  t.notMatch(JSON.stringify(listed.body), secret)
  t.match(await postroad.get(`${ADMIN}/keys`, { key }), { status: 403 })
  t.match(await postroad.delete(one, { key }), { status: 200 })
  t.match(await postroad.get('/api/v1/api-key/permissions', { key: secret }), { status: 401 })
  t.match(await postroad.delete(one, { key }), { status: 404 })
  const log = await postroad.get(
    `${ADMIN}/activity?workspace_id=${postroad.workspaceId}&actor=operator_token`,
    {
      key,
    },
  )
  t.match(log.body.data, [
    { action: 'api_key.revoked', subject: 'shop', actor: { type: 'operator_token', peer: '127.0.0.1' } },
    { action: 'api_key.changed', changes: { rate_limit: { before: 100, after: 5 } } },
    { action: 'api_key.created', workspace_id: postroad.workspaceId },
  ])
})

t.test('workspace keys have no access to workspaces, keys, locks or the whole activity log', async t => {
  const postroad = await openTestAppliance(t)
  for (const path of ['/workspaces', '/keys', '/login-locks', '/activity'])
    t.match(await postroad.get(ADMIN + path, { key: postroad.key }), { status: 401 }, path)
})

t.test('the activity log is searched by action, actor, subject and time, and exported', async t => {
  const postroad = await openTestAppliance(t)
  const { clock } = postroad
  const key = await tokenWith(postroad, 'viewer')
  for (const email of ['ann@x.example', '=1+1@x.example', 'bob@y.example']) {
    await postroad.post('/api/v1/suppressions', { email }, { key: postroad.key })
    await clock.advance(1_000)
  }
  const subjects = async (query: string) => {
    const { body } = await postroad.get(`${ADMIN}/activity?action=suppression.added&${query}`, { key })
    return body.data.map(({ subject }: { subject: string }) => subject)
  }
  t.same(await subjects('subject=X.EXAMPLE'), ['=1+1@x.example', 'ann@x.example'])
  t.same(await subjects('subject=%25'), [])
  t.same(await subjects('actor=of+the+tests&limit=1'), ['bob@y.example'])
  t.same(await subjects('actor=nobody'), [])
  t.same(await subjects('since=2026-01-05T10:00:01Z&until=2026-01-05T10:00:02Z'), ['=1+1@x.example'])
  t.match(await postroad.get(`${ADMIN}/activity?since=yesterday`, { key }), { status: 400 })
  const exported = async (query: string) =>
    (
      await fetch(`${postroad.baseUrl}${ADMIN}/activity/export?action=suppression.added${query}`, {
        headers: { Authorization: `Bearer ${key}` },
      })
    ).text()
  const rows = (await exported('')).trim().split('\n')
  t.equal(rows.length, 4)
  t.match(rows[0], /^created_at,workspace_id,actor_type/)
  t.match(rows[2], "'=1+1@x.example", 'no formula')
  const lines = (await exported('&format=jsonl')).trim().split('\n')
  t.match(lines.map(line => JSON.parse(line) as object)[0], { subject: 'bob@y.example', is_sandbox: false })
})

t.test('locks are listed without secrets until they end', async t => {
  const clock = new FakeClock()
  const guard = new LoginGuard(clock, { failures: 2, lockoutMs: 60_000 })
  for (let n = 0; n < 2; n += 1) {
    await fail(guard, '192.0.2.1', { account: 'ann@example.com', password: `guess ${n}` })
    await fail(guard, '192.0.2.2', {
      account: 'ts_live_abcdef',
      password: `ts_live_abcdef${n}`,
      isAccountSecret: true,
    })
  }
  const locks = await guard.locks()
  t.same(locks.map(({ scope, address, account }) => [scope, address, account]).sort(), [
    ['account_at_address', '192.0.2.1', 'ann@example.com'],
    ['account_at_address', '192.0.2.2', undefined],
    ['address', '192.0.2.1', undefined],
    ['address', '192.0.2.2', undefined],
  ])
  t.notMatch(JSON.stringify(locks), 'ts_live')
  t.notMatch(JSON.stringify(locks), 'guess')
  await guard.forgive('192.0.2.1')
  t.equal((await guard.locks()).length, 2)
  clock.skip(60_000)
  t.same(await guard.locks(), [])
})
