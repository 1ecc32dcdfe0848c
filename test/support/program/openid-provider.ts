/**
 * An OpenID provider that nobody here wrote (oidc-provider), on the loopback, and a browser that walks between it and the appliance.
 *
 * Who sits in front of the browser is `person`; tests change what the provider says with `tamper`, which signs again with the provider's key.
 */
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider'
import type { Test } from 'tap'

export interface Account {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean
  readonly name?: string
  readonly groups?: readonly string[] | string
}

type Claims = Record<string, unknown>

export interface TestProvider {
  readonly issuer: string
  /** Null: cancels. */
  person: Account | null
  /** Changes the claims of ID tokens. */
  tamper: ((claims: Claims) => Claims) | undefined
  /** Whether ID tokens are signed with a key that the provider does not publish. */
  isForging: boolean
  /** Answers nothing more. */
  close(): Promise<void>
}

export const CLIENT_SECRET = 'a client secret of the test that appears in no log'
/** `public_url` of the appliance. */
export const PUBLIC_URL = 'https://mail.postroad.test'
const CALLBACK = '/api/admin/v1/session/oidc/callback'

/** @param inIdToken whether ID tokens carry all claims; otherwise the userinfo endpoint does */
export async function openTestProvider(t: Test, inIdToken = false): Promise<TestProvider> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const forged = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'ES256' }
  const people = new Map<string, Account>()
  const known = (sub: string) => (test.person?.sub === sub ? test.person : people.get(sub))
  const server = createServer()
  const issuer = `http://127.0.0.1:${await listen(server)}`
  const provider = new Provider(issuer, {
    adapter: memoryAdapter(),
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: 'postroad',
        client_secret: CLIENT_SECRET,
        redirect_uris: [PUBLIC_URL + CALLBACK],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    scopes: ['openid', 'email', 'profile', 'groups'],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name'],
      groups: ['groups'],
    },
    conformIdTokenClaims: !inIdToken,
    cookies: { keys: ['test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ ...known(sub), sub }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email profile groups')
      await grant.save()
      return grant
    },
  })
  const test: TestProvider = {
    issuer,
    person: null,
    tamper: undefined,
    isForging: false,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  provider.use(async (ctx, next) => {
    await next()
    const body = ctx.body as { id_token?: string } | undefined
    if (typeof body !== 'object' || typeof body.id_token !== 'string') return
    if (!test.tamper && !test.isForging) return
    const [header = '', payload = ''] = body.id_token.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims
    const changed = Buffer.from(JSON.stringify(test.tamper?.(claims) ?? claims)).toString('base64url')
    const key = test.isForging ? forged : createPrivateKey({ key: jwk, format: 'jwk' })
    const signature = sign('sha256', Buffer.from(`${header}.${changed}`), { key, dsaEncoding: 'ieee-p1363' })
    ctx.body = { ...body, id_token: `${header}.${changed}.${signature.toString('base64url')}` }
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response)
    const { person } = test
    if (person) people.set(person.sub, person)
    const result = person ? { login: { accountId: person.sub } } : { error: 'access_denied' }
    void provider.interactionFinished(request, response, result)
  })
  t.teardown(() => test.close())
  return test
}

/** The provider's own one prints a warning each time. */
function memoryAdapter(): new (model: string) => Adapter {
  const rows = new Map<string, AdapterPayload>()
  return class implements Adapter {
    private readonly model: string

    constructor(model: string) {
      this.model = model
    }

    upsert = async (id: string, payload: AdapterPayload) => void rows.set(`${this.model} ${id}`, payload)
    find = async (id: string) => rows.get(`${this.model} ${id}`)
    findByUid = async (uid: string) => this.findBy(payload => payload.uid === uid)
    findByUserCode = async (code: string) => this.findBy(payload => payload.userCode === code)
    destroy = async (id: string) => void rows.delete(`${this.model} ${id}`)

    consume = async (id: string) => {
      const row = rows.get(`${this.model} ${id}`)
      if (row) row.consumed = Math.floor(Date.now() / 1_000)
    }

    revokeByGrantId = async (grantId: string) => {
      for (const [id, payload] of rows) if (payload.grantId === grantId) rows.delete(id)
    }

    private findBy(matches: (payload: AdapterPayload) => boolean): AdapterPayload | undefined {
      return [...rows].find(([id, payload]) => id.startsWith(`${this.model} `) && matches(payload))?.[1]
    }
  }
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** Keeps cookies by host, as browsers do. */
export class WalkingBrowser {
  private readonly appliance: string
  private readonly jars = new Map<string, Map<string, string>>()

  /** @param appliance base URL */
  constructor(appliance: string) {
    this.appliance = appliance
  }

  /** Cookies of the appliance. */
  get cookies(): Map<string, string> {
    return this.jar(this.appliance)
  }

  /** @param path below the admin API, or a URL */
  async get(
    path: string,
  ): Promise<{ status: number; location: string; setCookies: string[]; body: unknown }> {
    const url = /^http/.test(path) ? path : `${this.appliance}/api/admin/v1${path}`
    const jar = this.jar(url)
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { Cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    const setCookies = response.headers.getSetCookie()
    for (const field of setCookies) {
      const [pair = ''] = field.split(';')
      const [name = '', ...value] = pair.split('=')
      const isOver = /max-age=0\b|expires=Thu, 01 Jan 1970/i.test(field)
      if (isOver) jar.delete(name)
      else jar.set(name, value.join('='))
    }
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const location = response.headers.get('location') ?? ''
    return {
      status: response.status,
      location: location === '' ? '' : new URL(location, url).href,
      setCookies,
      body: isJson ? (JSON.parse(text) as unknown) : text,
    }
  }

  /** To the provider. @returns its URL, before it is opened */
  async start(query = ''): Promise<string> {
    const { status, location, body } = await this.get(`/session/oidc/start${query}`)
    if (status !== 302) throw new Error(`start: ${status} ${JSON.stringify(body)}`)
    return location
  }

  /** Through the provider. @returns path and query of the callback, before it is opened */
  async authenticate(url: string): Promise<string> {
    let next = url
    for (let steps = 0; steps < 10; steps++) {
      const { status, location, body } = await this.get(next)
      if (location === '') throw new Error(`provider: ${status} ${JSON.stringify(body)}`)
      if (location.startsWith(PUBLIC_URL + CALLBACK))
        return `/session/oidc/callback${new URL(location).search}`
      next = location
    }
    throw new Error('the provider does not lead back')
  }

  /** The whole way. @returns where the browser ends, from the root */
  async signIn(query = ''): Promise<string> {
    const url = await this.start(query)
    return url.startsWith(PUBLIC_URL) ? pathOf(url) : this.finish(await this.authenticate(url))
  }

  /** @param callback path and query */
  async finish(callback: string): Promise<string> {
    const { status, location, body } = await this.get(callback)
    if (status !== 302) throw new Error(`callback: ${status} ${JSON.stringify(body)}`)
    return pathOf(location)
  }

  private jar(url: string): Map<string, string> {
    const { host } = new URL(url)
    const jar = this.jars.get(host) ?? new Map<string, string>()
    this.jars.set(host, jar)
    return jar
  }
}

function pathOf(url: string): string {
  const { origin, pathname, search, hash } = new URL(url)
  return (origin === PUBLIC_URL ? '' : origin) + pathname + search + hash
}
