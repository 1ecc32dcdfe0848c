/** Attacks on sign-in and sessions, over the running server: each test fails without the defence it names. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import t, { type Test } from 'tap'
import { fromBase32, totpCode } from '../../../src/accounts/operators/totp.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'
import { addOperator, openBrowser, signedIn, type Browser } from '../../support/program/operators.js'

const PASSWORD = 'correct horse battery'
const ME = '/api/admin/v1/me'
const HOUR_MS = 3_600_000
const OPEN = { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } }

/** Ann, an owner with a password. */
async function withPassword(t: Test) {
  const appliance = await openTestAppliance(t, OPEN)
  const ann = await signedIn(appliance, { email: 'ann@postroad.test' })
  await ann.ask('PUT', '/me/password', { password: PASSWORD })
  return { appliance, ann }
}

function signIn(browser: Browser, password = PASSWORD, email = 'ann@postroad.test') {
  return browser.ask('POST', '/session', { email, password })
}

async function enableTotp({ clock }: TestAppliance, browser: Browser) {
  const { secret } = (await browser.ask('POST', '/me/totp')).body.data as { secret: string }
  const code = () => totpCode(fromBase32(secret) ?? Buffer.alloc(0), Math.floor(clock.now() / 30_000))
  const { body } = await browser.ask('PUT', '/me/totp', { secret, code: code() })
  return { code, recovery: body.data.recovery_codes as string[] }
}

t.test(
  'behind a trusted proxy each client has its own limits, and is named in sessions and the log',
  async t => {
    const appliance = await openTestAppliance(t, {
      env: { ...OPEN.env, POSTROAD_HTTP_TRUSTED_PROXIES: '127.0.0.1/32' },
    })
    const ann = await signedIn(appliance, { email: 'ann@postroad.test' })
    await ann.ask('PUT', '/me/password', { password: PASSWORD })
    const from = (address: string, password: string) =>
      appliance.post(
        '/api/admin/v1/session',
        { email: 'ann@postroad.test', password },
        { headers: { 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': address } },
      )
    for (let n = 0; n < 10; n += 1) t.equal((await from('192.0.2.66', `guess number ${n}`)).status, 401)
    t.equal((await from('192.0.2.66', PASSWORD)).status, 429, 'who guesses is locked out')
    t.equal((await from('203.0.113.9, 192.0.2.66', PASSWORD)).status, 429, 'a forged address does not help')
    t.equal((await from('192.0.2.7', PASSWORD)).status, 200, 'and nobody else')
    const { body } = await ann.ask('GET', '/me/sessions')
    t.ok(body.data.some(({ ip }: { ip: string }) => ip === '192.0.2.7'))
    const log = await ann.ask('GET', '/activity?action=operator.signed_in&limit=1')
    t.match(log.body.data, [{ actor: { peer: '192.0.2.7' } }])
  },
)

t.test('without a trusted proxy nobody chooses the address they seem to come from', async t => {
  const { appliance, ann } = await withPassword(t)
  await appliance.post(
    '/api/admin/v1/session',
    { email: 'ann@postroad.test', password: PASSWORD },
    { headers: { 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': '192.0.2.7' } },
  )
  const { body } = await ann.ask('GET', '/me/sessions')
  t.same([...new Set(body.data.map(({ ip }: { ip: string }) => ip))], ['127.0.0.1'])
})

t.test('pages of other sites neither write with a session nor sign anybody in (CSRF)', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const ann = await signedIn(appliance)
  const { link } = await addOperator(appliance)
  const foreign = [
    { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' },
    { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'same-origin' },
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: appliance.baseUrl, 'Sec-Fetch-Site': 'cross-site' },
    { Origin: appliance.baseUrl, 'Sec-Fetch-Site': 'same-site' },
    { 'Sec-Fetch-Site': 'none' },
    {},
  ]
  for (const headers of foreign) {
    const name = JSON.stringify(headers)
    const send = (method: 'post' | 'patch', path: string, body: object, cookie = ann.cookie) =>
      appliance[method](`/api/admin/v1${path}`, body, { headers: { ...headers, Cookie: cookie } })
    t.match(
      await send('patch', '/me', { name: 'Eve' }),
      { status: 403, body: { error: { code: 'forbidden' } } },
      name,
    )
    t.equal((await send('post', '/session/link', { token: link }, '')).status, 403, `sign-in: ${name}`)
    t.equal((await send('post', '/session', { email: 'x@x.test', password: 'x' }, '')).status, 403, name)
    const out = await appliance.delete('/api/admin/v1/session', {
      headers: { ...headers, Cookie: ann.cookie },
    })
    t.equal(out.status, 403, `sign-out: ${name}`)
    const rest = await appliance.post(
      '/api/v1/tags',
      { name: 'x' },
      {
        headers: { ...headers, Cookie: ann.cookie, 'X-Workspace': appliance.workspaceId },
      },
    )
    t.equal(rest.status, 403, `REST API: ${name}`)
  }
  t.match(await ann.ask('GET', '/me'), { status: 200, body: { data: { name: '' } } })
  t.equal((await openBrowser(appliance).ask('POST', '/session/link', { token: link })).status, 200)
})

t.test('a planted cookie never becomes a session, and each step has a new one (fixation)', async t => {
  const { appliance, ann } = await withPassword(t)
  const { code } = await enableTotp(appliance, ann)
  appliance.clock.skip(60_000)
  const planted = `postroad_session=${'p'.repeat(43)}`
  const victim = openBrowser(appliance)
  victim.cookie = planted
  t.match(await signIn(victim), { status: 200, body: { data: { needs_code: true } } })
  const pending = victim.cookie
  t.equal((await victim.ask('POST', '/session/code', { code: code() })).status, 200)
  const complete = victim.cookie
  t.equal((await victim.ask('POST', '/session/confirm', { password: PASSWORD })).status, 200)
  t.equal(new Set([planted, pending, complete, victim.cookie]).size, 4)
  const works = async (cookie: string) =>
    (await appliance.get(ME, { headers: { Cookie: cookie } })).status === 200
  t.ok(await works(victim.cookie))
  for (const old of [planted, pending, complete]) t.notOk(await works(old))

  const again = openBrowser(appliance)
  again.cookie = victim.cookie
  appliance.clock.skip(60_000)
  await signIn(again)
  t.notOk(await works(victim.cookie), 'the session that the browser had before has ended')
})

t.test('guessing passwords stops, for unknown accounts alike (brute force)', async t => {
  const { appliance } = await withPassword(t)
  for (const email of ['ann@postroad.test', 'nobody@postroad.test']) {
    const guesser = openBrowser(appliance)
    const answers = []
    for (let n = 0; n < 10; n++) answers.push(await signIn(guesser, `guess number ${n}`, email))
    t.same(new Set(answers.map(({ status }) => status).slice(0, 9)).size, 1, email)
    const locked = await signIn(guesser, email.startsWith('ann') ? PASSWORD : 'x', email)
    t.match(locked, { status: 429, body: { error: { code: 'rate_limited' } } }, `${email}: the right one too`)
    t.ok(Number(locked.headers.get('retry-after')) > 60)
    appliance.clock.skip(15 * 60_000)
  }
  t.equal((await signIn(openBrowser(appliance))).status, 200, 'after the lockout')
})

t.test('guessing codes stops although the password is right', async t => {
  const { appliance, ann } = await withPassword(t)
  const { code } = await enableTotp(appliance, ann)
  appliance.clock.skip(60_000)
  const guesser = openBrowser(appliance)
  await signIn(guesser)
  for (let n = 0; n < 10; n++) await guesser.ask('POST', '/session/code', { code: String(100_000 + n) })
  await signIn(guesser)
  t.equal((await guesser.ask('POST', '/session/code', { code: code() })).status, 429)
})

t.test('each failed sign-in is a line in the log, until the guesser is locked out', async t => {
  const { appliance, ann } = await withPassword(t)
  const { code } = await enableTotp(appliance, ann)
  appliance.clock.skip(60_000)
  const lines = () => appliance.log.lines.filter(({ event }) => event === 'sign-in failed')
  const browser = openBrowser(appliance)
  await signIn(browser, 'wrong horse battery')
  await signIn(browser, PASSWORD, 'my secret@typed into the wrong field')
  await signIn(browser)
  await browser.ask('POST', '/session/code', { code: '123456' })
  await ann.ask('POST', '/session/confirm', { password: 'wrong horse battery' })
  await ann.ask('POST', '/session/confirm', { code: '654321' })
  const account = 'ann@postroad.test'
  t.same(
    lines().map(({ level, fields }) => [level, fields['account'], fields['peer'], fields['reason']]),
    [
      ['warn', account, '127.0.0.1', 'wrong password'],
      ['warn', undefined, '127.0.0.1', 'unknown account'],
      ['warn', account, '127.0.0.1', 'wrong code'],
      ['warn', account, '127.0.0.1', 'wrong password'],
      ['warn', account, '127.0.0.1', 'wrong code'],
    ],
  )
  t.notMatch(JSON.stringify(appliance.log.lines), /horse|secret|123456|654321/)
  await browser.ask('POST', '/session/code', { code: code() })
  t.equal(lines().length, 5, 'a right one is none')

  const guesser = openBrowser(appliance)
  for (let n = 0; n < 20; n++) await signIn(guesser, `guess number ${n}`, `user${n}@postroad.test`)
  t.equal(lines().length, 15, 'ten from an address')
  for (let n = 0; n < 20; n++) await signIn(guesser, `guess number ${n}`)
  t.equal(lines().length, 15)
})

t.test('no code and no recovery code works twice (replay)', async t => {
  const { appliance, ann } = await withPassword(t)
  const { code, recovery } = await enableTotp(appliance, ann)
  const attempt = async (given: string) => {
    const browser = openBrowser(appliance)
    await signIn(browser)
    return (await browser.ask('POST', '/session/code', { code: given })).status
  }
  t.equal(await attempt(code()), 401, 'the code that enabled it')
  appliance.clock.skip(60_000)
  t.equal(await attempt(code()), 200)
  t.equal(await attempt(code()), 401)
  t.equal(await attempt(recovery[0] ?? ''), 200)
  t.equal(await attempt(recovery[0] ?? ''), 401)
  t.equal((await ann.ask('POST', '/session/confirm', { code: code() })).status, 401)
})

t.test('an unknown account costs as much work and gets the same answer (enumeration)', async t => {
  const { appliance } = await withPassword(t)
  await addOperator(appliance, { email: 'invited@postroad.test' })
  let hashes = 0
  const { scrypt } = crypto
  crypto.scrypt = ((...args: Parameters<typeof scrypt>) => {
    hashes += 1
    scrypt(...args)
  }) as typeof scrypt
  syncBuiltinESMExports()
  t.teardown(() => {
    crypto.scrypt = scrypt
    syncBuiltinESMExports()
  })
  const seen = []
  for (const email of ['nobody@postroad.test', 'ann@postroad.test', 'invited@postroad.test', 'no address']) {
    hashes = 0
    const { status, body, headers } = await signIn(openBrowser(appliance), 'wrong horse battery', email)
    seen.push({ status, message: body.error.message as string, cookie: headers.get('set-cookie'), hashes })
  }
  const [first] = seen
  t.match(first, { status: 401, message: 'wrong email address, password or code', cookie: null })
  // The first one also makes what unknown accounts are compared with.
  t.same(
    seen.slice(1).map(one => one.hashes),
    [1, 1, 1],
  )
  for (const one of seen) t.same({ ...one, hashes: 0 }, { ...first, hashes: 0 })
})

t.test('the cookie is out of reach of scripts, other sites and plain http', async t => {
  const plain = await openTestAppliance(t, { toml: 'public_url = "http://mail.postroad.test"' })
  const { setCookie } = await signedIn(plain)
  t.match(setCookie, /^postroad_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Lax$/)
  const secure = await openTestAppliance(t, { toml: 'public_url = "https://mail.postroad.test"' })
  const ann = await signedIn(secure, {}, 'https://mail.postroad.test')
  t.match(
    ann.setCookie,
    /^__Host-postroad=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure$/,
  )
  t.notMatch(ann.setCookie, /domain/i)
  const planted = ann.cookie.replace('__Host-postroad', 'postroad_session')
  t.equal(
    (await secure.get(ME, { headers: { Cookie: planted } })).status,
    401,
    'without the prefix it is none',
  )
  await ann.ask('DELETE', '/session')
  t.match(ann.setCookie, /^__Host-postroad=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax; Secure$/)
})

t.test('sessions end after twelve idle hours and after seven days', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const [idle, busy] = [await signedIn(appliance), await signedIn(appliance)]
  for (let day = 0; day < 14; day++) {
    appliance.clock.skip(11 * HOUR_MS)
    t.equal((await busy.ask('GET', '/me')).status, 200)
    if (day === 1) t.equal((await idle.ask('GET', '/me')).status, 401)
  }
  appliance.clock.skip(14 * HOUR_MS)
  t.equal((await busy.ask('GET', '/me')).status, 401)
  const late = await signedIn(appliance)
  for (let n = 0; n < 15; n++) {
    appliance.clock.skip(11 * HOUR_MS)
    await late.ask('GET', '/me')
  }
  appliance.clock.skip(3 * HOUR_MS)
  t.equal((await late.ask('GET', '/me')).status, 401, 'however much it is used')
})

t.test('a changed role, a reset and a removal end access at the next request', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const owner = await signedIn(appliance)
  const ann = await signedIn(appliance)
  const token = (await ann.ask('POST', '/me/tokens', { name: 'x' })).body.data.token as string
  const list = (key: string) => appliance.get('/api/admin/v1/operators', { key })
  t.equal((await ann.ask('GET', '/operators')).status, 200)
  t.equal((await list(token)).status, 200)
  await owner.ask('PUT', `/operators/${ann.id}/roles/all`, { role: 'viewer' })
  t.equal((await ann.ask('GET', '/operators')).status, 403)
  t.equal((await list(token)).status, 403)
  await owner.ask('POST', `/operators/${ann.id}/reset`)
  t.equal((await ann.ask('GET', '/me')).status, 401)
  t.equal((await list(token)).status, 401)
  const bob = await signedIn(appliance)
  await owner.ask('DELETE', `/operators/${bob.id}`)
  t.equal((await bob.ask('GET', '/me')).status, 401)
})

t.test('sensitive actions need a recent sign-in', async t => {
  const { appliance, ann } = await withPassword(t)
  appliance.clock.skip(15 * 60_000 + 1)
  for (const [method, path, body] of [
    ['POST', '/operators', { email: 'x@postroad.test', role: 'viewer' }],
    ['DELETE', `/operators/${ann.id}`, undefined],
    ['PUT', '/me/password', { password: 'another horse battery' }],
    ['POST', '/me/totp', undefined],
    ['POST', '/me/tokens', { name: 'x' }],
  ] as const)
    t.match(
      await ann.ask(method, path, body),
      { status: 403, body: { error: { code: 'sign_in_required' } } },
      path,
    )
  t.equal((await ann.ask('GET', '/operators')).status, 200)
  t.equal((await ann.ask('POST', '/session/confirm', { password: 'wrong horse battery' })).status, 401)
  t.equal((await ann.ask('POST', '/me/tokens', { name: 'x' })).status, 403)
  t.equal((await ann.ask('POST', '/session/confirm', { password: PASSWORD })).status, 200)
  t.equal((await ann.ask('POST', '/me/tokens', { name: 'x' })).status, 201)
  t.match(await ann.ask('POST', '/session/confirm', {}), { status: 400 })
})

t.test('API keys gain nothing on the admin API', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const { key } = appliance
  for (const path of ['/me', '/operators', '/workspaces', '/activity', '/me/tokens'])
    t.match(await appliance.get(`/api/admin/v1${path}`, { key }), { status: 401 }, path)
  t.equal((await appliance.post('/api/admin/v1/me/tokens', { name: 'x' }, { key })).status, 401)
  const ann = await signedIn(appliance)
  const mixed = await ann.ask('GET', '/me', undefined, { Authorization: `Bearer ${key}` })
  t.equal(mixed.status, 401, 'a session beside the key does not help')
})

t.test('operators use the REST API of their workspaces only', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const { workspaceId: own } = appliance
  const { id: other } = await appliance.json<{ id: string }>('workspace', 'create', 'other')
  const ann = await signedIn(appliance, { role: 'marketer', workspace: own })
  const { token } = (await ann.ask('POST', '/me/tokens', { name: 'x' })).body.data as { token: string }
  const ways: readonly ((path: string, headers: Record<string, string>, body?: object) => Promise<number>)[] =
    [
      async (path, headers, body) =>
        (await ann.ask(body ? 'POST' : 'GET', `/api/v1${path}`, body, headers)).status,
      async (path, headers, body) =>
        (body
          ? await appliance.post(`/api/v1${path}`, body, { key: token, headers })
          : await appliance.get(`/api/v1${path}`, { key: token, headers })
        ).status,
    ]
  for (const [way, ask] of ways.entries()) {
    const name = `tag ${way}`
    t.equal(await ask('/tags', { 'X-Workspace': own }), 200)
    t.equal(await ask('/tags', { 'X-Workspace': own }, { name }), 201)
    t.equal(await ask('/tags', { 'X-Workspace': own, 'X-Sandbox': 'true' }, { name }), 201, 'its sandbox')
    t.equal(await ask('/tags', { 'X-Workspace': other }), 404)
    t.equal(await ask('/tags', { 'X-Workspace': other, 'X-Sandbox': 'true' }), 404)
    t.equal(await ask('/tags', { 'X-Workspace': 'none' }), 404)
    t.equal(await ask('/tags', { 'X-Workspace': '*' }), 404)
    t.equal(await ask('/tags', {}), 400)
    t.equal(await ask('/webhooks/triggers', { 'X-Workspace': own }), 403, 'beyond the role')
  }
})
