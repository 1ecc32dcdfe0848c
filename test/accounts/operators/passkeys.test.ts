/** Passkeys over the running server, with an authenticator in software: ES256, and the CBOR it needs written by hand. */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import t, { type Test } from 'tap'
import { LoginGuard } from '../../../src/accounts/login-guard.js'
import { createOperator } from '../../../src/accounts/operators/operators.js'
import {
  challengePasskey,
  proposePasskey,
  registerPasskey,
  signInWithPasskey,
} from '../../../src/accounts/operators/passkeys.js'
import { Passwords } from '../../../src/accounts/operators/password.js'
import { plainBox } from '../../../src/accounts/secret-box.js'
import { uuidv7 } from '../../../src/core/ids.js'
import type { Database, Tx } from '../../../src/db/database.js'
import { shellOperator } from '../../../src/http/operator.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { eachDatabase } from '../../support/db/database.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { openBrowser, signedIn, type Browser } from '../../support/program/operators.js'

const ORIGIN = 'https://mail.postroad.test'
const HOST = 'mail.postroad.test'

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()
const base64url = (data: Buffer | string) => Buffer.from(data).toString('base64url')

/** CBOR (RFC 8949 §3): a head of major type and length, for lengths below 65536. */
function head(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length])
  return length < 256
    ? Buffer.from([(major << 5) | 24, length])
    : Buffer.from([(major << 5) | 25, length >> 8, length & 255])
}
const int = (n: number) => (n < 0 ? head(1, -1 - n) : head(0, n))
const bytes = (data: Buffer) => Buffer.concat([head(2, data.length), data])
const text = (word: string) => Buffer.concat([head(3, word.length), Buffer.from(word)])
const map = (...pairs: Buffer[]) => Buffer.concat([head(5, pairs.length / 2), ...pairs])

interface Made {
  /** Origin of the page that the browser shows. */
  readonly origin?: string
  readonly host?: string
  readonly isVerified?: boolean
  /** What the browser says of the frame that the page is in. */
  readonly framed?: { readonly crossOrigin?: boolean; readonly topOrigin?: string }
}

/** An authenticator with one credential. */
class Authenticator {
  readonly id = randomBytes(32)
  counter = 0
  private readonly privateKey: KeyObject
  private readonly coseKey: Buffer

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.privateKey = privateKey
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    const [px, py] = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
    // RFC 9053 §7.1.1: EC2, ES256, P-256, x, y.
    this.coseKey = map(
      int(1),
      int(2),
      int(3),
      int(-7),
      int(-1),
      int(1),
      int(-2),
      bytes(px),
      int(-3),
      bytes(py),
    )
  }

  create(challenge: string, made: Made = {}) {
    const attested = Buffer.concat([
      Buffer.alloc(16),
      Buffer.from([0, this.id.length]),
      this.id,
      this.coseKey,
    ])
    const authData = Buffer.concat([this.data(0x40, made), attested])
    const attestation = map(
      text('fmt'),
      text('none'),
      text('attStmt'),
      map(),
      text('authData'),
      bytes(authData),
    )
    return this.credential({
      clientDataJSON: base64url(clientData('webauthn.create', challenge, made)),
      attestationObject: base64url(attestation),
      transports: ['internal'],
    })
  }

  get(challenge: string, made: Made = {}) {
    const client = clientData('webauthn.get', challenge, made)
    const authData = this.data(0, made)
    return this.credential({
      clientDataJSON: base64url(client),
      authenticatorData: base64url(authData),
      signature: base64url(sign('sha256', Buffer.concat([authData, sha256(client)]), this.privateKey)),
    })
  }

  /** WebAuthn §6.1. Flags: 1 user present, 4 user verified. */
  private data(flags: number, { host = HOST, isVerified = true }: Made): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(++this.counter)
    return Buffer.concat([sha256(host), Buffer.from([flags | 1 | (isVerified ? 4 : 0)]), counter])
  }

  private credential(response: object) {
    const id = base64url(this.id)
    return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} }
  }
}

function clientData(type: string, challenge: string, { origin = ORIGIN, framed }: Made): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false, ...framed }))
}

async function challengeFor(browser: Browser, path: string): Promise<string> {
  const { status, body } = await browser.ask('POST', path)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body.data.challenge as string
}

const toRegister = (browser: Browser) => challengeFor(browser, '/me/passkeys/options')
const toSignIn = (browser: Browser) => challengeFor(browser, '/session/passkey/options')

async function open(t: Test) {
  const appliance = await openTestAppliance(t, {
    toml: `public_url = "${ORIGIN}"`,
    env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' },
  })
  const ann = await signedIn(appliance, { email: 'ann@postroad.test' }, ORIGIN)
  return { appliance, ann, browser: () => openBrowser(appliance, ORIGIN) }
}

async function withPasskey(t: Test) {
  const opened = await open(t)
  const key = new Authenticator()
  const response = key.create(await toRegister(opened.ann))
  const { status } = await opened.ann.ask('POST', '/me/passkeys', { name: 'laptop', response })
  t.equal(status, 201)
  return { ...opened, key }
}

t.test('a passkey signs in without an address or a password, and can be removed', async t => {
  const { ann, browser, key } = await withPasskey(t)
  const elsewhere = browser()
  const response = key.get(await toSignIn(elsewhere))
  t.match(await elsewhere.ask('POST', '/session/passkey', response), {
    status: 200,
    body: { data: { needs_code: false } },
  })
  t.match(await elsewhere.ask('GET', '/me'), { status: 200, body: { data: { email: 'ann@postroad.test' } } })
  const listed = await ann.ask('GET', '/me/passkeys')
  t.match(listed.body.data, [{ name: 'laptop', last_used_at: String }])
  const removal = `/me/passkeys/${listed.body.data[0].id as string}`
  t.match(await ann.ask('DELETE', removal), {
    status: 409,
    body: { error: { code: 'conflict', message: /all you can sign in with/ } },
  })
  t.equal((await elsewhere.ask('GET', '/me')).status, 200)
  t.equal((await ann.ask('PUT', '/me/password', { password: 'correct horse battery' })).status, 200)
  const thief = browser()
  t.equal(
    (await thief.ask('POST', '/session/passkey', key.get(await toSignIn(thief)))).status,
    200,
    'as whoever has the lost authenticator',
  )
  t.equal((await ann.ask('DELETE', removal)).status, 200)
  t.equal((await thief.ask('GET', '/me')).status, 401, 'the sessions that it opened have ended')
  t.equal((await ann.ask('GET', '/me')).status, 200)
  const again = await browser().ask('POST', '/session/passkey', key.get(await toSignIn(browser())))
  t.equal(again.status, 401)
})

t.test('removing one of two passkeys ends its own sessions only', async t => {
  const { ann, browser, key } = await withPasskey(t)
  const other = new Authenticator()
  const response = other.create(await toRegister(ann))
  t.equal((await ann.ask('POST', '/me/passkeys', { name: 'phone', response })).status, 201)
  const [byLaptop, byPhone] = [browser(), browser()]
  await byLaptop.ask('POST', '/session/passkey', key.get(await toSignIn(byLaptop)))
  await byPhone.ask('POST', '/session/passkey', other.get(await toSignIn(byPhone)))
  t.equal((await byPhone.ask('DELETE', `/me/passkeys/${base64url(other.id)}`)).status, 200)
  t.equal((await byPhone.ask('GET', '/me')).status, 200, 'the one that removes it stays')
  t.equal((await byLaptop.ask('GET', '/me')).status, 200)
  t.equal((await byPhone.ask('DELETE', `/me/passkeys/${base64url(key.id)}`)).status, 409, 'the last one')
})

t.test(
  'a passkey that a page of another site asked for in a frame is neither registered nor signs in',
  async t => {
    const { ann, browser, key } = await withPasskey(t)
    for (const framed of [
      { topOrigin: 'https://evil.example' },
      { crossOrigin: true },
      { crossOrigin: true, topOrigin: ORIGIN },
      { topOrigin: ORIGIN },
    ]) {
      const response = new Authenticator().create(await toRegister(ann), { framed })
      t.match(await ann.ask('POST', '/me/passkeys', { name: 'x', response }), { status: 400 })
      const one = browser()
      t.equal(
        (await one.ask('POST', '/session/passkey', key.get(await toSignIn(one), { framed }))).status,
        401,
      )
    }
  },
)

t.test('the options name this host and require a verified user', async t => {
  const { ann, browser } = await open(t)
  t.match((await ann.ask('POST', '/me/passkeys/options')).body.data, {
    rp: { id: HOST },
    user: { name: 'ann@postroad.test' },
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
  t.match((await browser().ask('POST', '/session/passkey/options')).body.data, {
    rpId: HOST,
    userVerification: 'required',
  })
})

t.test('a signature for another origin or host, or without a verified user, does not sign in', async t => {
  const { browser, key } = await withPasskey(t)
  const attempt = async (made: Made) =>
    (await browser().ask('POST', '/session/passkey', key.get(await toSignIn(browser()), made))).status
  t.equal(await attempt({ origin: 'https://mail.postroad.test.evil.example' }), 401)
  t.equal(await attempt({ origin: 'http://mail.postroad.test' }), 401)
  t.equal(await attempt({ host: 'evil.example' }), 401)
  t.equal(await attempt({ isVerified: false }), 401)
  t.equal(await attempt({}), 200)
})

t.test('nor is one registered', async t => {
  const { ann } = await open(t)
  for (const made of [{ origin: 'https://evil.example' }, { host: 'evil.example' }, { isVerified: false }]) {
    const response = new Authenticator().create(await toRegister(ann), made)
    t.match(await ann.ask('POST', '/me/passkeys', { name: 'x', response }), {
      status: 400,
      body: { error: { path: 'response' } },
    })
  }
  t.same((await ann.ask('GET', '/me/passkeys')).body.data, [])
})

t.test('a challenge works once, for its purpose, for five minutes', async t => {
  const { appliance, ann, browser, key } = await withPasskey(t)
  const attempt = async (challenge: string) =>
    (await browser().ask('POST', '/session/passkey', key.get(challenge))).status
  const challenge = await toSignIn(browser())
  const response = key.get(challenge)
  t.equal((await browser().ask('POST', '/session/passkey', response)).status, 200)
  t.equal((await browser().ask('POST', '/session/passkey', response)).status, 401, 'the same answer again')
  t.equal(await attempt(challenge), 401, 'a new answer to it')
  t.equal(await attempt(randomBytes(32).toString('base64url')), 401, 'a made-up one')
  t.equal(await attempt(await toRegister(ann)), 401, 'one to register')
  const late = await toSignIn(browser())
  appliance.clock.skip(5 * 60_000)
  t.equal(await attempt(late), 401)

  const bob = await signedIn(appliance, {}, ORIGIN)
  const foreign = new Authenticator().create(await toRegister(ann))
  t.equal((await bob.ask('POST', '/me/passkeys', { name: 'x', response: foreign })).status, 400)
})

t.test('a copied authenticator is noticed by its counter', async t => {
  const { browser, key } = await withPasskey(t)
  const attempt = async () =>
    (await browser().ask('POST', '/session/passkey', key.get(await toSignIn(browser())))).status
  t.equal(await attempt(), 200)
  t.equal(await attempt(), 200)
  key.counter = 1
  t.equal(await attempt(), 401)
})

t.test('registering needs a recent sign-in, which a passkey confirms', async t => {
  const { appliance, ann, key } = await withPasskey(t)
  appliance.clock.skip(15 * 60_000 + 1)
  t.match(await ann.ask('POST', '/me/passkeys/options'), { body: { error: { code: 'sign_in_required' } } })
  const before = ann.cookie
  const response = key.get(await toSignIn(ann))
  t.equal((await ann.ask('POST', '/session/confirm/passkey', response)).status, 200)
  t.not(ann.cookie, before)
  t.equal((await ann.ask('POST', '/me/passkeys/options')).status, 200)

  const bob = await signedIn(appliance, {}, ORIGIN)
  const foreign = key.get(await toSignIn(bob))
  t.equal((await bob.ask('POST', '/session/confirm/passkey', foreign)).status, 401, "somebody else's")
})

t.test('rejected passkeys are logged and counted, so that they cannot flood the log', async t => {
  const { appliance, browser, key } = await withPasskey(t)
  const attempt = async (authenticator: Authenticator, made: Made = {}) =>
    (await browser().ask('POST', '/session/passkey', authenticator.get(await toSignIn(browser()), made)))
      .status
  const lines = () =>
    appliance.log.lines.filter(({ event }) => event === 'sign-in failed').map(({ fields }) => fields)
  t.equal(await attempt(key, { origin: 'https://evil.example' }), 401)
  t.equal(await attempt(new Authenticator()), 401)
  const bob = await signedIn(appliance, {}, ORIGIN)
  await bob.ask('POST', '/session/confirm/passkey', key.get(await toSignIn(bob)))
  t.match(lines(), [
    { account: 'ann@postroad.test', peer: '127.0.0.1', reason: 'passkey rejected' },
    { account: undefined, peer: '127.0.0.1', reason: 'passkey rejected' },
    { account: bob.email, peer: '127.0.0.1', reason: 'passkey rejected' },
  ])
  for (let n = 0; n < 30; n++) await attempt(new Authenticator())
  t.ok(lines().length <= 10, `${lines().length} lines of 33 attempts`)
  t.equal(await attempt(new Authenticator()), 429)
  t.equal(await attempt(key), 200, 'a right one still signs in')
})

t.test('a passkey that keeps failing is locked like a password, to sign in and to confirm', async t => {
  const { appliance, ann, browser, key } = await withPasskey(t)
  const attempt = async (made: Made = {}) =>
    (await browser().ask('POST', '/session/passkey', key.get(await toSignIn(browser()), made))).status
  for (let n = 0; n < 10; n++) t.equal(await attempt({ origin: 'https://evil.example' }), 401)
  t.equal(await attempt(), 429)
  const response = key.get(await toSignIn(ann))
  t.equal((await ann.ask('POST', '/session/confirm/passkey', response)).status, 429)
  appliance.clock.skip(15 * 60_000)
  t.equal(await attempt(), 200)
})

eachDatabase(t, 'of a passkey and its copy, used at the same moment, one signs in', async (t, database) => {
  const clock = new FakeClock()
  const random = new SeededRandom()
  const parts = {
    database,
    clock,
    random,
    box: plainBox,
    log: new FakeLog(),
    publicUrl: ORIGIN,
    hostname: HOST,
    newId: () => uuidv7(clock.now(), random.bytes(10)),
    passwords: new Passwords(random),
    guard: new LoginGuard(clock, { failures: 5, lockoutMs: 60_000 }),
  }
  const shell = shellOperator('')
  const grant = { workspaceId: '*', role: 'owner' } as const
  const { operator } = await createOperator(parts, { email: 'ann@postroad.test', grant }, 'sign_in', shell)
  const ann = { ...shell, id: operator.id, email: operator.email }
  const key = new Authenticator()
  const made = key.create((await proposePasskey(parts, ann)).challenge)
  await registerPasskey(parts, ann, 'laptop', made as Parameters<typeof registerPasskey>[3])
  type Assertion = Parameters<typeof signInWithPasskey>[1]
  const signature = async () => key.get((await challengePasskey(parts)).challenge) as Assertion
  const [first, second] = [await signature(), await signature()]
  const home = { peer: '192.0.2.1', userAgent: 'browser' }
  let writes = 0
  // The first write takes the challenge, the second opens the session.
  const write = async <T>(work: (tx: Tx) => Promise<T>): Promise<T> => {
    if (++writes === 2) await t.resolves(signInWithPasskey(parts, second, home))
    return database.write(work)
  }
  const slow = Object.create(database, { write: { value: write } }) as Database
  await t.rejects(signInWithPasskey({ ...parts, database: slow }, first, home), { code: 'unauthorized' })
})
