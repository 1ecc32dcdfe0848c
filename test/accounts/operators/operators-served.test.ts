/** Operators' accounts over HTTP: managing others within one's own privileges, one's own account, tokens. */
import t from 'tap'
import { fromBase32, totpCode } from '../../../src/accounts/operators/totp.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'
import { addOperator, openBrowser, signedIn } from '../../support/program/operators.js'

const PASSWORD = 'correct horse battery'

async function addWorkspace(appliance: TestAppliance, name: string): Promise<string> {
  return (await appliance.json<{ id: string }>('workspace', 'create', name)).id
}

t.test('an owner creates, changes, resets and removes operators', async t => {
  const appliance = await openTestAppliance(t)
  const owner = await signedIn(appliance)
  const body = { email: 'Bob@Example.com', name: 'Bob', role: 'viewer', workspace_id: appliance.workspaceId }
  const created = await owner.ask('POST', '/operators', body)
  t.match(created, {
    status: 201,
    body: {
      data: {
        email: 'bob@example.com',
        roles: [{ workspace_id: appliance.workspaceId, role: 'viewer' }],
        link: /\/console\/#\/link\/[\w-]{43}$/,
        has_password: false,
      },
    },
  })
  const { id, link_token: link } = created.body.data as { id: string; link_token: string }
  t.equal(created.headers.get('location'), `/api/admin/v1/operators/${id}`)
  t.match(await owner.ask('POST', '/operators', body), {
    status: 409,
    body: { error: { code: 'duplicate' } },
  })
  t.match(await owner.ask('GET', '/operators/bob@example.com'), { status: 200, body: { data: { id } } })

  const bob = openBrowser(appliance)
  t.match(await bob.ask('POST', '/session/link', { token: link }), {
    status: 200,
    body: { data: { needs_code: false } },
  })
  t.equal((await bob.ask('PUT', '/me/password', { password: PASSWORD })).status, 200)
  t.match(await bob.ask('GET', '/operators'), { status: 403 })

  t.equal((await owner.ask('PATCH', `/operators/${id}`, { name: 'Robert' })).body.data.name, 'Robert')
  t.match(await owner.ask('PUT', `/operators/${id}/roles/all`, { role: 'operator' }), {
    status: 200,
    body: {
      data: {
        roles: [{ workspace_id: null, role: 'operator' }, { role: 'viewer' }],
        credentials_removed: true,
      },
    },
  })
  t.equal((await bob.ask('GET', '/me')).status, 401, 'nobody has proved the address')
  const again = await owner.ask('POST', `/operators/${id}/reset`)
  await bob.ask('POST', '/session/link', { token: again.body.data.link_token })
  await bob.ask('PUT', '/me/password', { password: PASSWORD })
  t.match(await bob.ask('GET', '/operators'), { status: 200 }, 'the new role counts')
  t.equal((await owner.ask('DELETE', `/operators/${id}/roles/all`)).status, 200)
  t.equal((await bob.ask('GET', '/operators')).status, 403)

  t.match(await owner.ask('GET', `/operators/${id}/sessions`), {
    body: { data: [{ method: 'link', is_current: false }] },
  })
  t.equal((await owner.ask('DELETE', `/operators/${id}/sessions`)).status, 200)
  t.equal((await bob.ask('GET', '/me')).status, 401)

  const reset = await owner.ask('POST', `/operators/${id}/reset`)
  t.match(reset, { status: 200, body: { data: { has_password: false, link_token: String } } })
  t.equal((await bob.ask('POST', '/session', { email: 'bob@example.com', password: PASSWORD })).status, 401)
  t.equal((await owner.ask('DELETE', `/operators/${id}`)).status, 200)
  t.equal((await bob.ask('POST', '/session/link', { token: reset.body.data.link_token })).status, 401)
  t.equal((await owner.ask('GET', `/operators/${id}`)).status, 404)

  const { out } = await appliance.run('activity', 'list', '--workspace', appliance.workspaceId)
  t.match(out, 'operator.created')
  t.match(out, 'operator.removed')
  t.notMatch(out, PASSWORD)
})

t.test('the owner of one workspace stays within it', async t => {
  const appliance = await openTestAppliance(t)
  const shop = await addWorkspace(appliance, 'shop')
  const other = await addWorkspace(appliance, 'other')
  const owner = await signedIn(appliance)
  const ann = await signedIn(appliance, { role: 'owner', workspace: shop })
  const own = await addOperator(appliance, { role: 'operator', workspace: shop })
  const both = await addOperator(appliance, { role: 'viewer', workspace: shop })
  await owner.ask('PUT', `/operators/${both.id}/roles/${other}`, { role: 'viewer' })
  const foreign = await addOperator(appliance, { role: 'viewer', workspace: other })

  const listed = await ann.ask('GET', '/operators')
  const seen = listed.body.data as { email: string; roles: { workspace_id: string | null }[] }[]
  t.same(
    seen.map(({ email }) => email).sort(),
    [ann.email, own.email, both.email].sort(),
    'operators of other workspaces and of the appliance are not listed',
  )
  t.notMatch(JSON.stringify(seen), other, 'nor are roles there')

  const create = (body: object) => ann.ask('POST', '/operators', { email: 'new@postroad.test', ...body })
  t.equal((await create({ role: 'viewer' })).status, 403, 'a role in all workspaces')
  t.equal((await create({ role: 'viewer', workspace_id: other })).status, 404)
  t.equal((await create({ role: 'owner', workspace_id: shop })).status, 201)
  for (const place of ['all', '*'])
    for (const id of [ann.id, own.id])
      t.equal((await ann.ask('PUT', `/operators/${id}/roles/${place}`, { role: 'viewer' })).status, 403)
  t.equal((await ann.ask('PUT', `/operators/${ann.id}/roles/${other}`, { role: 'viewer' })).status, 404)
  t.equal((await ann.ask('DELETE', `/operators/${both.id}/roles/${other}`)).status, 404)

  const acts = (id: string) =>
    Promise.all([
      ann.ask('PATCH', `/operators/${id}`, { name: 'x' }),
      ann.ask('POST', `/operators/${id}/reset`),
      ann.ask('DELETE', `/operators/${id}`),
      ann.ask('GET', `/operators/${id}/sessions`),
      ann.ask('DELETE', `/operators/${id}/sessions`),
      ann.ask('GET', `/operators/${id}/tokens`),
    ])
  for (const { status } of await acts(both.id)) t.equal(status, 403, 'more roles than their own')
  for (const id of [foreign.id, owner.id]) for (const { status } of await acts(id)) t.equal(status, 404)
  t.equal((await ann.ask('DELETE', `/operators/${both.id}/roles/${shop}`)).status, 200, 'their role in shop')
  t.equal((await ann.ask('POST', `/operators/${own.id}/reset`)).status, 200)
  t.equal((await ann.ask('DELETE', `/operators/${own.id}`)).status, 200)
})

t.test('a token never becomes more than it is', async t => {
  const appliance = await openTestAppliance(t)
  const owner = await signedIn(appliance)
  const make = async (body: object, key?: string) =>
    key === undefined
      ? owner.ask('POST', '/me/tokens', body)
      : appliance.post('/api/admin/v1/me/tokens', body, { key })
  const expires_at = new Date(appliance.clock.now() + 3_600_000).toISOString()
  const limited = (await make({ name: 'reports', role: 'operator', expires_at })).body.data.token as string
  t.match(await appliance.get('/api/admin/v1/me', { key: limited }), {
    status: 200,
    body: { data: { limited_to: 'operator', signed_in_with: 'token' } },
  })
  t.equal((await make({ name: 'x', expires_at }, limited)).status, 403, 'without a limit')
  t.equal((await make({ name: 'x', role: 'owner', expires_at }, limited)).status, 403)
  t.equal((await make({ name: 'x', role: 'viewer' }, limited)).status, 403, 'without an end')
  t.equal((await make({ name: 'x', role: 'viewer', expires_at }, limited)).status, 201)
  const grant = { email: 'x@postroad.test', role: 'viewer' }
  t.equal((await appliance.post('/api/admin/v1/operators', grant, { key: limited })).status, 403)

  const whole = (await make({ name: 'ansible' })).body.data.token as string
  t.equal((await appliance.post('/api/admin/v1/operators', grant, { key: whole })).status, 201)
  for (const [method, path, body] of [
    ['put', '/me/password', { password: PASSWORD }],
    ['post', '/me/totp', {}],
    ['patch', '/me', { name: 'x' }],
    ['post', '/session/confirm', { password: PASSWORD }],
  ] as const) {
    const { status } = await appliance[method](`/api/admin/v1${path}`, body, { key: whole })
    t.ok([403, 409].includes(status), `${path} is not for tokens`)
  }
  t.match(await make({ name: 'late', expires_at: '2001-01-01' }), { status: 400 })
  const { body } = await owner.ask('GET', '/me/tokens')
  t.notMatch(JSON.stringify(body), whole, 'lists show no tokens')
  const { id } = (body.data as { id: string; name: string }[]).find(({ name }) => name === 'ansible') ?? {
    id: '',
  }
  t.equal((await owner.ask('DELETE', `/me/tokens/${id}`)).status, 200)
  t.equal((await appliance.get('/api/admin/v1/me', { key: whole })).status, 401)
})

t.test('a token with a role that its operator does not have is refused', async t => {
  const appliance = await openTestAppliance(t)
  const viewer = await signedIn(appliance, { email: 'ann@postroad.test', role: 'viewer' })
  t.match(await viewer.ask('POST', '/me/tokens', { name: 'x', role: 'marketer' }), {
    status: 403,
    body: { error: { path: 'role', message: /ann@postroad\.test has no role that includes marketer/ } },
  })
  t.equal((await viewer.ask('POST', '/me/tokens', { name: 'x', role: 'viewer' })).status, 201)
})

t.test('an operator keeps name, password, authenticator app and sessions', async t => {
  const appliance = await openTestAppliance(t)
  const { clock } = appliance
  const ann = await signedIn(appliance, { email: 'ann@postroad.test' })
  t.match(await ann.ask('PATCH', '/me', { name: 'Ann' }), { status: 200, body: { data: { name: 'Ann' } } })
  t.equal((await ann.ask('PUT', '/me/password', { password: PASSWORD })).status, 200)
  t.match(await ann.ask('PUT', '/me/password', { password: 'short' }), {
    status: 400,
    body: { error: { path: 'password' } },
  })
  const proposed = await ann.ask('POST', '/me/totp')
  const { secret, url } = proposed.body.data as { secret: string; url: string }
  t.match(url, /^otpauth:\/\/totp\/mx\.postroad\.test:ann%40postroad\.test\?/)
  const code = () => totpCode(fromBase32(secret) ?? Buffer.alloc(0), Math.floor(clock.now() / 30_000))
  t.equal((await ann.ask('PUT', '/me/totp', { secret, code: '000000' })).status, 400)
  const enabled = await ann.ask('PUT', '/me/totp', { secret, code: code() })
  t.equal((enabled.body.data.recovery_codes as string[]).length, 10)

  clock.skip(60_000)
  const elsewhere = openBrowser(appliance)
  t.match(await elsewhere.ask('POST', '/session', { email: 'ann@postroad.test', password: PASSWORD }), {
    status: 200,
    body: { data: { needs_code: true } },
  })
  t.equal((await elsewhere.ask('GET', '/me')).status, 401, 'not before the code')
  t.equal((await elsewhere.ask('POST', '/session/code', { code: code() })).status, 200)
  t.match(await elsewhere.ask('GET', '/me'), {
    status: 200,
    body: { data: { has_totp: true, has_password: true, recovery_codes_left: 10 } },
  })
  const { data } = (await ann.ask('GET', '/me/sessions')).body as {
    data: { id: string; is_current: boolean; method: string }[]
  }
  t.equal(data.length, 2)
  const other = data.find(({ is_current }) => !is_current)
  t.match(other, { method: 'password', ip: '127.0.0.1' })
  t.equal((await ann.ask('DELETE', `/me/sessions/${other?.id ?? ''}`)).status, 200)
  t.equal((await elsewhere.ask('GET', '/me')).status, 401)
  t.match(
    (await ann.ask('GET', '/activity?action=operator.signed_out')).body.data,
    [{ subject: 'ann@postroad.test', actor: { type: 'operator' } }],
    'a session that was ended stands in the activity log',
  )

  t.equal((await ann.ask('POST', '/me/recovery-codes')).body.data.recovery_codes.length, 10)
  t.equal((await ann.ask('DELETE', '/me/totp')).status, 200)
  t.match(await elsewhere.ask('POST', '/session', { email: 'ann@postroad.test', password: PASSWORD }), {
    body: { data: { needs_code: false } },
  })
  t.equal((await elsewhere.ask('DELETE', '/session')).status, 200)
  t.equal(elsewhere.cookie, '')
})
