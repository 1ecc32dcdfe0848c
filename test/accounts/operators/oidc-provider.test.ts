/** What an OpenID provider that hangs, lies or leads elsewhere can do: nothing, within a bound. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { ProviderError } from '../../../src/accounts/operators/oidc/provider.js'
import { openProvider } from '../../../src/accounts/operators/oidc/provider.js'
import type { OidcSettings } from '../../../src/accounts/operators/oidc/settings.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { until } from '../../support/until.js'

const ROUND = { state: 's'.repeat(43), nonce: 'n'.repeat(43), verifier: 'v'.repeat(43) }

const SETTINGS: Omit<OidcSettings, 'issuer'> = {
  clientId: 'postroad',
  clientSecret: 'secret',
  clientSecretFile: '',
  name: 'SSO',
  scopes: ['email'],
  groupsClaim: 'groups',
  trustEmail: false,
  ca: '',
  roles: [],
}

async function serve(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function open(issuer: string, more: Partial<OidcSettings> = {}) {
  const clock = new FakeClock()
  const provider = openProvider({
    clock,
    lookUp: async host =>
      host === 'tenant.b2clogin.com' ? ['127.0.0.1'] : Promise.reject(new Error(`${host} was looked up`)),
    settings: { ...SETTINGS, ...more, issuer },
    redirectUri: 'https://mail.postroad.test/callback',
  })
  return { clock, provider }
}

const json: (value: object) => RequestListener = value => (_, response) => {
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(value))
}

const failure = (asked: Promise<unknown>): Promise<ProviderError> =>
  asked.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: unknown) => error as ProviderError,
  )

t.test('a provider that never answers is given up after 5 s', async t => {
  let isAsked = false
  const { clock, provider } = open(await serve(t, () => (isAsked = true)))
  const asked = failure(provider.authorizationUrl(ROUND, 0))
  await until('the request', () => isAsked)
  await clock.advance(5_000)
  t.match(await asked, { name: 'ProviderError', kind: 'unavailable', message: /timed out/ })
})

t.test('an answer that does not end is read to 256 KB', async t => {
  const { provider } = open(
    await serve(t, (_, response) => {
      response.setHeader('Content-Type', 'application/json')
      const more = (): void => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
        response.once('drain', more)
      }
      more()
    }),
  )
  t.match(await failure(provider.authorizationUrl(ROUND, 0)), { kind: 'unavailable', message: /too long/ })
})

t.test('an error of the server, a redirect and a page are no discovery document', async t => {
  const answers: readonly [RequestListener, object][] = [
    [(_, response) => response.writeHead(502).end(), { kind: 'unavailable', message: /answers 502/ }],
    [(_, response) => response.writeHead(302, { Location: '/x' }).end(), { kind: 'refused' }],
    [(_, response) => response.setHeader('Content-Type', 'text/html').end('<p>'), { kind: 'refused' }],
    [json({ issuer: 'https://evil.example' }), { kind: 'refused', message: /issuer/ }],
  ]
  for (const [answer, expected] of answers) {
    const { provider } = open(await serve(t, answer))
    t.match(await failure(provider.authorizationUrl(ROUND, 0)), expected)
  }
})

t.test(
  'a document that stands for many issuers is refused, also where the library knows the provider',
  async t => {
    const issuer = (await serve(t, json({ issuer: 'https://login.example/{tenantid}/v2.0' }))).replace(
      '127.0.0.1',
      'tenant.b2clogin.com',
    )
    const { provider } = open(issuer)
    t.match(await failure(provider.authorizationUrl(ROUND, 0)), {
      kind: 'refused',
      message: /another issuer/,
    })
  },
)

t.test('another host that the provider names must be on the public Internet', async t => {
  let asked = 0
  const inner = await serve(t, (_, response) => {
    asked += 1
    response.end('{}')
  })
  const issuer = await serve(t, (request, response) =>
    json({
      issuer,
      authorization_endpoint: `${issuer}auth`,
      token_endpoint: `${inner}token`,
      jwks_uri: `${inner}keys`,
    })(request, response),
  )
  const { provider } = open(issuer)
  const answer = new URLSearchParams({ state: ROUND.state, code: 'x' })
  t.match(await failure(provider.redeem(ROUND, answer)), {
    kind: 'unavailable',
    message: /not public \(loopback\)/,
  })
  t.equal(asked, 0)
})

t.test('an answer that cannot be read is not quoted', async t => {
  const issuer = await serve(t, (request, response) => {
    if (request.url === '/token')
      response.setHeader('Content-Type', 'application/json').end('hunter2 is no JSON')
    else
      json({ issuer, authorization_endpoint: `${issuer}auth`, token_endpoint: `${issuer}token` })(
        request,
        response,
      )
  })
  const { provider } = open(issuer)
  const answer = new URLSearchParams({ state: ROUND.state, code: 'x' })
  const { kind, message } = await failure(provider.redeem(ROUND, answer))
  t.equal(kind, 'refused')
  t.notMatch(message, /hunter2/)
})

t.test('after a failure the next sign-in asks again, after a success for an hour none does', async t => {
  let asked = 0
  const issuer = await serve(t, (request, response) => {
    asked += 1
    if (asked === 1) response.writeHead(503).end()
    else json({ issuer, authorization_endpoint: `${issuer}auth` })(request, response)
  })
  const { clock, provider } = open(issuer)
  await failure(provider.authorizationUrl(ROUND, 0))
  for (let n = 0; n < 3; n++) await provider.authorizationUrl(ROUND, 0)
  t.equal(asked, 2)
  clock.skip(3_600_000)
  await provider.authorizationUrl(ROUND, 0)
  t.equal(asked, 3)
})

t.test(
  'the secret is read from its file at the first sign-in, and sent by the method that the provider lists',
  async t => {
    const file = `${t.testdir({ secret: 'of the file\n' })}/secret`
    for (const [method, sent] of [
      ['client_secret_basic', /^Basic /],
      ['client_secret_post', /client_secret=of\+the\+file/],
    ] as const) {
      let seen = ''
      const issuer = await serve(t, (request, response) => {
        if (request.url !== '/token') {
          json({
            ...{ issuer, authorization_endpoint: `${issuer}auth`, token_endpoint: `${issuer}token` },
            token_endpoint_auth_methods_supported: [method],
          })(request, response)
          return
        }
        request.setEncoding('utf8').on('data', text => (seen += String(text)))
        request.on('end', () => {
          seen = (request.headers.authorization ?? '') + seen
          response.writeHead(400, { 'Content-Type': 'application/json' }).end('{"error":"invalid_grant"}')
        })
      })
      const { provider } = open(issuer, { clientSecret: '', clientSecretFile: file })
      const answer = new URLSearchParams({ state: ROUND.state, code: 'x' })
      t.match(await failure(provider.redeem(ROUND, answer)), { kind: 'refused', message: /invalid_grant/ })
      t.match(seen, sent, method)
      t.match(seen, /code_verifier=v{43}/)
    }
  },
)
