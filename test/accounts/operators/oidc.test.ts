/** Sign-in with OpenID Connect over the running server, with a real provider: what works, and each attack that must not. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t, { type Test } from 'tap'
import { fromBase32, totpCode } from '../../../src/accounts/operators/totp.js'
import { openTestAppliance, type ApplianceOptions } from '../../support/program/appliance.js'
import {
  CLIENT_SECRET,
  openTestProvider,
  PUBLIC_URL,
  WalkingBrowser,
  type Account,
  type TestProvider,
} from '../../support/program/openid-provider.js'
import { addOperator, openBrowser, signedIn } from '../../support/program/operators.js'

const SESSION = '__Host-postroad'
const BINDING = '__Host-postroad-oidc'
const PASSWORD = 'correct horse battery'
const refusal = (code: string) => `/console/?oidc_error=${code}#/sign-in`

const ANN: Account = {
  sub: 'ann-1',
  email: 'ann@postroad.test',
  email_verified: true,
  name: 'Ann',
  groups: ['staff', 'mail-admins'],
}

const settingsFor = (provider: Pick<TestProvider, 'issuer'>, more = '') => `
public_url = "${PUBLIC_URL}"
[oidc]
issuer = "${provider.issuer}"
client_id = "postroad"
client_secret = "${CLIENT_SECRET}"
name = "Example SSO"
scopes = ["email", "profile", "groups"]
${more}
[[oidc.roles]]
group = "mail-admins"
role = "owner"
[[oidc.roles]]
group = "marketing"
role = "marketer"
[[oidc.roles]]
group = "watchers"
role = "viewer"
`

interface Opening extends ApplianceOptions {
  readonly inIdToken?: boolean
  /** Further keys of the section. */
  readonly keys?: string
}

async function open(t: Test, { inIdToken = false, keys, ...options }: Opening = {}) {
  const provider = await openTestProvider(t, inIdToken)
  const appliance = await openTestAppliance(t, {
    ...options,
    toml: settingsFor(provider, keys) + (options.toml ?? ''),
    env: {
      POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0',
      POSTROAD_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      ...options.env,
    },
  })
  provider.person = ANN
  const api = (browser: WalkingBrowser) => {
    const client = openBrowser(appliance, PUBLIC_URL)
    client.cookie = `${SESSION}=${browser.cookies.get(SESSION) ?? 'none'}`
    return client
  }
  return {
    ...{ provider, appliance },
    browser: () => new WalkingBrowser(appliance.baseUrl),
    api,
    me: async (browser: WalkingBrowser) => (await api(browser).ask('GET', '/me')).body.data,
    refusals: () =>
      appliance.log.lines
        .filter(({ event }) => /operator sign-in refused|identity provider unavailable/.test(event))
        .map(({ fields }) => fields),
  }
}

function rows(dataDir: string, query: string): unknown[] {
  const database = new BetterSqlite(join(dataDir, 'postroad.db'))
  try {
    return database.prepare(query).all()
  } finally {
    database.close()
  }
}

t.test('a person with a group signs in, and gets an account with its role', async t => {
  const { browser, me, api, provider } = await open(t)
  const ann = browser()
  t.equal(await ann.signIn(), '/console/')
  t.match(await me(ann), {
    email: 'ann@postroad.test',
    name: 'Ann',
    roles: [{ workspace_id: null, role: 'owner', from_groups: true }],
    has_password: false,
    has_oidc: true,
  })
  t.match((await api(ann).ask('GET', '/me/sessions')).body.data, [{ method: 'oidc' }])
  t.notOk(ann.cookies.has(BINDING), 'the cookie of the round is gone')

  provider.person = { ...ANN, email: 'ann.new@postroad.test' }
  const elsewhere = browser()
  t.equal(await elsewhere.signIn(), '/console/')
  t.match(
    await me(elsewhere),
    { email: 'ann@postroad.test' },
    'the same account, whatever her address is now',
  )
})

t.test('claims are read from the ID token too', async t => {
  const { browser, me } = await open(t, { inIdToken: true })
  const ann = browser()
  await ann.signIn()
  t.match(await me(ann), { email: 'ann@postroad.test', roles: [{ role: 'owner' }] })
})

t.test('public pages learn whether OpenID Connect is offered', async t => {
  const { browser } = await open(t)
  t.match(await browser().get('/session/methods'), {
    status: 200,
    body: { data: { password: true, passkey: true, oidc: { name: 'Example SSO' } } },
  })
  const ann = browser()
  await ann.signIn()
  t.match(await ann.get('/session/methods'), { body: { data: { signed_in: true } } })
  const without = new WalkingBrowser((await openTestAppliance(t)).baseUrl)
  t.match(await without.get('/session/methods'), { body: { data: { oidc: null, signed_in: false } } })
  for (const path of ['/session/oidc/start', '/session/oidc/callback?state=x&code=y'])
    t.match(await without.get(path), { status: 404, body: { error: { code: 'not_found' } } })
})

t.test(
  'the request to the provider has PKCE, state and nonce, and nothing secret is stored or logged',
  async t => {
    const { browser, appliance, provider } = await open(t)
    const ann = browser()
    const { location, setCookies } = await ann.get('/session/oidc/start')
    const { origin, searchParams } = new URL(location)
    t.equal(origin, provider.issuer)
    t.match(Object.fromEntries(searchParams), {
      response_type: 'code',
      client_id: 'postroad',
      redirect_uri: `${PUBLIC_URL}/api/admin/v1/session/oidc/callback`,
      scope: 'openid email profile groups',
      code_challenge_method: 'S256',
      code_challenge: /^[\w-]{43}$/,
      state: /^[\w-]{43}$/,
      nonce: /^[\w-]{43}$/,
    })
    t.match(setCookies, [
      /^__Host-postroad-oidc=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    ])
    const [row] = rows(appliance.dataDir, "select * from operator_challenges where kind = 'oidc'")
    t.match(row, { sealed: /^sealed:1:/ })
    for (const name of ['state', 'nonce']) t.notMatch(JSON.stringify(row), searchParams.get(name))
    t.notMatch(JSON.stringify(row), ann.cookies.get(BINDING))

    await ann.finish(await ann.authenticate(location))
    t.same(rows(appliance.dataDir, 'select * from operator_challenges'), [])
    const logged = JSON.stringify(appliance.log.lines)
    for (const value of [
      CLIENT_SECRET,
      searchParams.get('state'),
      searchParams.get('nonce'),
      ann.cookies.get(SESSION),
    ])
      t.notMatch(logged, value)
  },
)

t.test('groups are read again at every sign-in', async t => {
  const { browser, me, provider } = await open(t)
  const roles = async (groups: readonly string[] | string) => {
    provider.person = { ...ANN, groups }
    const ann = browser()
    await ann.signIn()
    return (await me(ann)).roles as { role: string }[]
  }
  t.match(await roles(['mail-admins']), [{ role: 'owner' }])
  t.match(await roles(['watchers']), [{ role: 'viewer' }])
  t.match(
    await roles(['watchers', 'marketing', 'mail-admins']),
    [{ role: 'owner' }],
    'the first of the roles',
  )
  t.match(await roles(['watchers', 'marketing']), [{ role: 'marketer' }])
  t.match(await roles('watchers'), [{ role: 'viewer' }], 'a single one may be text')
})

t.test('roles of a workspace are given there, and one that does not exist is ignored and logged', async t => {
  const { browser, me, appliance, provider } = await open(t, {
    toml: `
[[oidc.roles]]
group = "shop"
role = "operator"
workspace = "Shop"
[[oidc.roles]]
group = "shop"
role = "owner"
workspace = "Gone"
`,
  })
  provider.person = { ...ANN, groups: ['shop'] }
  t.equal(await browser().signIn(), refusal('no_role'))
  const { id } = await appliance.json<{ id: string }>('workspace', 'create', 'Shop')
  const ann = browser()
  t.equal(await ann.signIn(), '/console/')
  t.same((await me(ann)).roles, [{ workspace_id: id, role: 'operator', from_groups: true }])
  t.match(
    appliance.log.lines.filter(({ event }) => event === 'role mapping ignored'),
    [{ fields: { workspaces: 'Shop, Gone' } }, { fields: { workspaces: 'Gone' } }],
  )
})

t.test('a role given by hand stays as it is, and takes precedence in its workspace', async t => {
  const { browser, me, appliance, provider } = await open(t)
  provider.person = { ...ANN, groups: ['watchers'] }
  await browser().signIn()
  await appliance.json('operator', 'set', 'ann@postroad.test', '--role', 'operator')
  const ann = browser()
  await ann.signIn()
  t.match((await me(ann)).roles, [{ role: 'operator', from_groups: false }])
  provider.person = { ...ANN, groups: ['mail-admins'] }
  await ann.signIn()
  t.match((await me(ann)).roles, [{ role: 'operator', from_groups: false }])
})

t.test('without a group that gives a role nobody signs in, and the access from groups ends', async t => {
  const { browser, me, api, provider, refusals, appliance } = await open(t)
  provider.person = { ...ANN, groups: ['staff'] }
  t.equal(await browser().signIn(), refusal('no_role'))
  t.match(refusals(), [{ code: 'no_role', subject: 'ann-1', groups: 'staff' }])
  t.match((await appliance.json<object[]>('operator', 'list')).length, 0, 'no account is made')

  provider.person = ANN
  const ann = browser()
  await ann.signIn()
  const made = await api(ann).ask('POST', '/me/tokens', { name: 'script' })
  t.equal(made.status, 201)
  provider.person = { ...ANN, groups: [] }
  t.equal(await browser().signIn(), refusal('no_role'))
  t.equal((await api(ann).ask('GET', '/me')).status, 401, 'her session has ended')
  const byToken = await appliance.get('/api/admin/v1/me', { key: made.body.data.token as string })
  t.equal(byToken.status, 401, 'and so has her token')
  t.match(await appliance.json('operator', 'list'), [{ email: 'ann@postroad.test', roles: [] }])

  provider.person = ANN
  await ann.signIn()
  t.match((await me(ann)).roles, [{ role: 'owner' }], 'and with the group everything is back')
})

t.test(
  'an account with a role by hand loses what groups gave, and sessions of the provider only',
  async t => {
    const { browser, api, me, provider, appliance } = await open(t)
    const email = 'ann@postroad.test'
    await addOperator(appliance, { email, role: 'viewer', workspace: appliance.workspaceId })
    const ann = browser()
    await ann.signIn()
    t.equal((await me(ann)).roles.length, 2)
    t.equal((await api(ann).ask('PUT', '/me/password', { password: PASSWORD })).status, 200)
    const byPassword = openBrowser(appliance, PUBLIC_URL)
    t.equal((await byPassword.ask('POST', '/session', { email, password: PASSWORD })).status, 200)
    provider.person = { ...ANN, groups: [] }
    t.equal(await browser().signIn(), refusal('no_role'))
    t.equal((await api(ann).ask('GET', '/me')).status, 401)
    t.match((await byPassword.ask('GET', '/me')).body.data.roles, [{ role: 'viewer', from_groups: false }])
    t.equal((await byPassword.ask('GET', '/me')).body.data.roles.length, 1)
  },
)

// The maker of an account may keep a password and a token in it.
t.test(
  'what was set up before the provider vouched for the address is removed when it is linked',
  async t => {
    const { browser, me, provider, appliance } = await open(t)
    const email = 'ann@postroad.test'
    const maker = await signedIn(
      appliance,
      { email, role: 'viewer', workspace: appliance.workspaceId },
      PUBLIC_URL,
    )
    await maker.ask('PUT', '/me/password', { password: PASSWORD })
    const key = (await maker.ask('POST', '/me/tokens', { name: 'kept' })).body.data.token as string
    const ann = browser()
    t.equal(await ann.signIn(), '/console/?credentials_removed=true')
    t.match(await me(ann), { id: maker.id, has_password: false, roles: { length: 2 } })
    t.equal((await maker.ask('GET', '/me')).status, 401, 'the session')
    t.equal((await appliance.get('/api/admin/v1/me', { key })).status, 401, 'the token')
    const guess = openBrowser(appliance, PUBLIC_URL)
    t.equal((await guess.ask('POST', '/session', { email, password: PASSWORD })).status, 401, 'the password')
    const { out } = await appliance.run('activity', 'list')
    t.match(out, 'operator.credentials_removed')
    t.match(out, 'operator.identity_linked')

    // From now on the address is proved, so nothing is removed again.
    const again = browser()
    t.equal(await again.signIn(), '/console/')
    t.match(await me(ann), { id: maker.id })
    provider.person = { ...ANN, groups: ['watchers'] }
    t.equal(await browser().signIn(), '/console/')
    provider.person = ANN
    t.equal(await browser().signIn(), '/console/', 'a wider role')
    t.match(await me(ann), { id: maker.id })
  },
)

t.test('an account is linked by its address only if the provider has verified that', async t => {
  const { browser, me, provider, appliance, refusals } = await open(t)
  const existing = await signedIn(
    appliance,
    { email: 'ann@postroad.test', role: 'viewer', workspace: appliance.workspaceId },
    PUBLIC_URL,
  )
  for (const email_verified of [false, undefined]) {
    provider.person = {
      ...ANN,
      ...(email_verified === undefined ? { email_verified: undefined } : { email_verified }),
    } as Account
    t.equal(await browser().signIn(), refusal('email_unverified'))
  }
  t.match(refusals(), [{ code: 'email_unverified' }, { code: 'email_unverified' }])
  t.match((await existing.ask('GET', '/me')).body.data, { has_oidc: false, roles: { length: 1 } })
  provider.person = { ...ANN, email: 'Ann@Postroad.Test' }
  const ann = browser()
  t.equal(await ann.signIn(), '/console/?credentials_removed=true')
  t.match(await me(ann), { id: existing.id, has_oidc: true })
})

t.test('whoever gets an address later does not get the account linked to it', async t => {
  const { browser, provider, appliance } = await open(t)
  await browser().signIn()
  provider.person = { ...ANN, sub: 'another-ann' }
  t.equal(await browser().signIn(), refusal('account_linked'))
  t.equal((await appliance.json<object[]>('operator', 'list')).length, 1)
})

t.test('with trust_email the address of a provider that verifies none is enough', async t => {
  const { browser, provider } = await open(t, { keys: 'trust_email = true' })
  provider.person = { sub: 'x', email: 'x@postroad.test', groups: ['watchers'] }
  t.equal(await browser().signIn(), '/console/')
})

t.test(
  'the code of an authenticator app is not asked for: the provider answers for second factors',
  async t => {
    const { browser, me, api, appliance } = await open(t)
    const first = browser()
    await first.signIn()
    const session = api(first)
    const { secret } = (await session.ask('POST', '/me/totp')).body.data as { secret: string }
    const code = totpCode(fromBase32(secret) ?? Buffer.alloc(0), Math.floor(appliance.clock.now() / 30_000))
    t.equal((await session.ask('PUT', '/me/totp', { secret, code })).status, 200)
    const ann = browser()
    await ann.signIn()
    t.match(await me(ann), { has_totp: true })
  },
)

t.test('a state that was used, is made up or expired leads nowhere (replay)', async t => {
  const { browser, refusals, appliance } = await open(t)
  const ann = browser()
  const callback = await ann.authenticate(await ann.start())
  const binding = ann.cookies.get(BINDING) ?? ''
  t.equal(await ann.finish(callback), '/console/')
  ann.cookies.set(BINDING, binding)
  t.equal(await ann.finish(callback), refusal('expired'), 'the same answer again')

  const other = await ann.authenticate(await ann.start())
  t.equal(await ann.finish(other.replace(/state=[\w-]+/, `state=${'s'.repeat(43)}`)), refusal('expired'))
  t.equal(await ann.finish('/session/oidc/callback'), refusal('expired'), 'no state at all')

  const late = await ann.authenticate(await ann.start())
  appliance.clock.skip(10 * 60_000)
  t.equal(await ann.finish(late), refusal('expired'))
  t.match(refusals(), [{ code: 'expired' }, { code: 'expired' }, { code: 'expired' }, { code: 'expired' }])
})

t.test("another browser's state signs nobody in (login CSRF)", async t => {
  const { browser } = await open(t)
  const [mallory, victim] = [browser(), browser()]
  const planted = await mallory.authenticate(await mallory.start())
  t.equal(await victim.finish(planted), refusal('expired'), 'a browser that began nothing')
  await victim.start()
  const again = await mallory.authenticate(await mallory.start())
  t.equal(await victim.finish(again), refusal('expired'), 'nor one that began a sign-in itself')
  t.notOk(victim.cookies.has(SESSION))
})

t.test('an ID token that is not for this sign-in is refused', async t => {
  const { browser, provider, refusals } = await open(t)
  const attempts: readonly [string, RegExp, (claims: Record<string, unknown>) => Record<string, unknown>][] =
    [
      ['nonce', /nonce/, claims => ({ ...claims, nonce: 'n'.repeat(43) })],
      ['no nonce', /nonce/, ({ nonce: _, ...claims }) => claims],
      ['audience', /aud/, claims => ({ ...claims, aud: 'another client' })],
      ['issuer', /iss/, claims => ({ ...claims, iss: 'https://evil.example' })],
      ['expiry', /exp/, claims => ({ ...claims, exp: Number(claims['iat']) - 3_600 })],
    ]
  for (const [name, reason, tamper] of attempts) {
    provider.tamper = tamper
    t.equal(await browser().signIn(), refusal('refused'), name)
    t.match(refusals().at(-1), { code: 'refused', reason }, name)
  }
  provider.tamper = undefined
  provider.isForging = true
  t.equal(await browser().signIn(), refusal('refused'), 'signature')
  provider.isForging = false
  t.equal(await browser().signIn(), '/console/')
})

t.test(
  "a nonce that the browser changed on the way is noticed, and another issuer's answer is (RFC 9207)",
  async t => {
    const { browser, refusals } = await open(t)
    const ann = browser()
    const changed = (await ann.start()).replace(/nonce=[\w-]+/, `nonce=${'n'.repeat(43)}`)
    t.equal(await ann.finish(await ann.authenticate(changed)), refusal('refused'))

    const callback = await ann.authenticate(await ann.start())
    t.match(callback, /[?&]iss=/)
    t.equal(
      await ann.finish(callback.replace(/iss=[^&]+/, 'iss=https%3A%2F%2Fevil.example')),
      refusal('refused'),
    )
    t.match(refusals().at(-1), { reason: /iss/ })
    const without = await ann.authenticate(await ann.start())
    t.equal(await ann.finish(without.replace(/&?iss=[^&]+/, '')), refusal('refused'), 'nor without one')
  },
)

t.test('a code of another round does not pass (PKCE)', async t => {
  const { browser } = await open(t)
  const [ann, mallory] = [browser(), browser()]
  const stolen = new URL(await ann.authenticate(await ann.start()), PUBLIC_URL).searchParams.get('code')
  const own = await mallory.authenticate(await mallory.start())
  t.equal(await mallory.finish(own.replace(/code=[^&]+/, `code=${stolen}`)), refusal('refused'))
})

t.test('a person who cancels is back at the sign-in page', async t => {
  const { browser, provider, refusals } = await open(t)
  provider.person = null
  t.equal(await browser().signIn(), refusal('cancelled'))
  t.match(refusals(), [{ code: 'cancelled', reason: /access_denied/ }])
})

t.test('a provider that is down, or silent, is told at once', async t => {
  const { browser, provider, refusals, appliance } = await open(t)
  const ann = browser()
  const callback = await ann.authenticate(await ann.start())
  await provider.close()
  t.equal(await ann.finish(callback), refusal('unavailable'), 'after the person has signed in there')
  appliance.clock.skip(3_600_000)
  t.equal(await ann.signIn(), refusal('unavailable'), 'before')
  t.match(refusals(), [{ code: 'unavailable', reason: /ECONNREFUSED/ }, { code: 'unavailable' }])
})

t.test('a page of the console is returned to, and no other place', async t => {
  const { browser } = await open(t)
  const ann = browser()
  t.equal(
    await ann.signIn(`?return_to=${encodeURIComponent('/console/?a=1#/queue')}`),
    '/console/?a=1#/queue',
  )
  for (const place of [
    'https://evil.example/',
    '//evil.example/console/',
    '/console',
    '/console/\\evil',
    '/api/',
  ])
    t.match(
      await ann.get(`/session/oidc/start?return_to=${encodeURIComponent(place)}`),
      { status: 400, body: { error: { path: 'return_to' } } },
      place,
    )
})

t.test('the session that the browser had before ends with a new sign-in', async t => {
  const { browser, appliance } = await open(t)
  const ann = browser()
  await ann.signIn()
  const before = ann.cookies.get(SESSION) ?? ''
  await ann.signIn()
  t.not(ann.cookies.get(SESSION), before)
  const headers = { Cookie: `${SESSION}=${before}` }
  t.equal((await appliance.get('/api/admin/v1/me', { headers })).status, 401)
})

t.test('removing or resetting an account ends its sessions and its link to the provider', async t => {
  const { browser, api, appliance } = await open(t)
  const ann = browser()
  await signedIn(appliance, {}, PUBLIC_URL)
  for (const verb of ['reset', 'remove']) {
    await ann.signIn()
    t.equal((await api(ann).ask('GET', '/me')).status, 200)
    t.equal((await appliance.run('operator', verb, 'ann@postroad.test', '--yes')).status, 0)
    t.equal((await api(ann).ask('GET', '/me')).status, 401, verb)
    t.same(rows(appliance.dataDir, 'select * from operator_identities'), [], verb)
  }
})

t.test('a round at the provider confirms who is signed in, if they proved it just now', async t => {
  const { browser, api, provider, appliance } = await open(t)
  // The provider tells real time.
  appliance.clock.jump(Date.now() - appliance.clock.now())
  const ann = browser()
  await ann.signIn()
  appliance.clock.skip(15 * 60_000 + 1_000)
  const tryIt = async () => (await api(ann).ask('POST', '/me/tokens', { name: 'x' })).body
  t.match(await tryIt(), { error: { code: 'sign_in_required' } })

  const url = await ann.start('?confirm=true&return_to=/console/')
  t.match(Object.fromEntries(new URL(url).searchParams), { prompt: 'login', max_age: '0' })
  // As of a provider that answers from an earlier sign-in.
  provider.tamper = claims => ({ ...claims, auth_time: Number(claims['auth_time']) - 3_600 })
  t.equal(await ann.finish(await ann.authenticate(url)), '/console/?oidc_error=not_recent')
  provider.tamper = ({ auth_time: _, ...claims }) => claims
  t.equal(await ann.signIn('?confirm=true'), '/console/?oidc_error=not_recent', 'or does not say')
  t.match(await tryIt(), { error: { code: 'sign_in_required' } })

  provider.tamper = claims => ({ ...claims, auth_time: Math.floor(appliance.clock.now() / 1_000) })
  const before = ann.cookies.get(SESSION)
  t.equal(await ann.signIn('?confirm=true'), '/console/')
  t.not(ann.cookies.get(SESSION), before, 'with a new token')
  t.match(await tryIt(), { data: { token: String } })
})

t.test('only the person who is signed in confirms, in the session that began', async t => {
  const { browser, api, provider, appliance } = await open(t)
  appliance.clock.jump(Date.now() - appliance.clock.now())
  const ann = browser()
  await ann.signIn()
  t.equal((await browser().get('/session/oidc/start?confirm=true')).status, 401, 'no session')

  provider.person = { sub: 'bob', email: 'bob@postroad.test', email_verified: true, groups: ['mail-admins'] }
  // The provider has not seen this browser yet.
  const bob = browser()
  for (const [name, value] of ann.cookies) bob.cookies.set(name, value)
  t.equal(await bob.signIn('?confirm=true'), '/console/?oidc_error=other_account')
  t.match(
    await appliance.json('operator', 'list'),
    [{ email: 'ann@postroad.test' }],
    'and no account is made',
  )

  provider.person = ANN
  const elsewhere = browser()
  await elsewhere.signIn()
  const begun = await ann.authenticate(await ann.start('?confirm=true'))
  const own = ann.cookies.get(SESSION) ?? ''
  ann.cookies.set(SESSION, elsewhere.cookies.get(SESSION) ?? '')
  t.equal(await ann.finish(begun), '/console/?oidc_error=other_account', 'another session of hers')
  ann.cookies.set(SESSION, own)

  const callback = await ann.authenticate(await ann.start('?confirm=true'))
  await api(ann).ask('DELETE', '/session')
  t.equal(await ann.finish(callback), '/console/?oidc_error=other_account', 'the session has ended')
})

t.test('a sign-in at the provider that lies back does not count as recent', async t => {
  const { browser, api, provider, appliance } = await open(t)
  appliance.clock.jump(Date.now() - appliance.clock.now())
  provider.tamper = claims => ({ ...claims, auth_time: Number(claims['auth_time']) - 3_600 })
  const ann = browser()
  t.equal(await ann.signIn(), '/console/')
  t.match((await api(ann).ask('POST', '/me/tokens', { name: 'x' })).body, {
    error: { code: 'sign_in_required' },
  })
})

t.test('starts and callbacks count against the rate of their address', async t => {
  const { browser } = await open(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '3' } })
  const ann = browser()
  const statuses = []
  for (let n = 0; n < 2; n++)
    for (const path of ['/session/oidc/start', '/session/oidc/callback'])
      statuses.push((await ann.get(path)).status)
  t.same(statuses, [302, 302, 302, 429])
})
