/** AUTH at a relay. */
import t from 'tap'
import type { Route } from '../../../src/mta/mta-options.js'
import { certificate, scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta } from '../../support/smtp/mta.js'

const base64 = (text: string) => Buffer.from(text).toString('base64')

const secured = (mechanisms: string) => `
  S 220 relay.example ESMTP
  C EHLO ...
  S 250-relay.example
  S 250 STARTTLS
  C STARTTLS
  S 220 ready
  TLS
  C EHLO ...
  S 250-relay.example
  S 250 ${mechanisms}`

const mail = `
  C MAIL ...
  S 250 ok
  C RCPT ...
  S 250 ok
  C DATA
  S 354 go on
  M
  S 250 ok`

function relay(parts: Partial<Route> = {}): { routes: Route[] } {
  return {
    routes: [
      {
        domain: '*',
        host: '192.0.2.25',
        port: 587,
        tls: 'require',
        username: 'shop',
        password: 'sëcret',
        allowUnverifiedAuth: true,
        ...parts,
      },
    ],
  }
}

t.test('a relay with AUTH PLAIN gets user name and password under TLS', async t => {
  const mx = await scriptedServer(
    t,
    `${secured('AUTH LOGIN PLAIN')}
     C AUTH PLAIN ${base64('\0shop\0sëcret')}
     S 235 2.7.0 welcome
     ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx }, relay())
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('AUTH LOGIN is used if it is the only mechanism', async t => {
  const mx = await scriptedServer(
    t,
    `${secured('AUTH=LOGIN')}
     C AUTH LOGIN
     S 334 VXNlcm5hbWU6
     C ${base64('shop')}
     S 334 UGFzc3dvcmQ6
     C ${base64('sëcret')}
     S 235 welcome
     ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx }, relay())
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('a wrong password defers the mail, counts against no recipient and is not disclosed', async t => {
  const mx = await scriptedServer(
    t,
    `${secured('AUTH PLAIN')}
     C AUTH PLAIN ...
     S 535 5.7.8 wrong password`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx }, relay())
  const outcome = await agent.deliver(makeJob(), goOn)
  t.match(outcome, {
    kind: 'deferred',
    cause: 'config',
    permanence: 'transient',
    tried: [{ stage: 'auth', reply: { code: 535 } }],
  })
  t.notMatch(JSON.stringify(outcome), 'sëcret')
  t.notMatch(JSON.stringify(outcome), base64('\0shop\0sëcret'))
})

t.test('a relay without a supported mechanism defers the mail', async t => {
  const mx = await scriptedServer(t, secured('AUTH CRAM-MD5 GSSAPI'))
  const { agent } = testMta(t, { '192.0.2.25': mx }, relay())
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    cause: 'config',
    subtype: 'auth_unavailable',
    tried: [{ stage: 'auth', error: 'server offers neither AUTH PLAIN nor AUTH LOGIN' }],
  })
})

t.test('a password is not sent in plaintext just because TLS is missing', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 relay.example ESMTP
     C EHLO ...
     S 250-relay.example
     S 250 AUTH PLAIN`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx }, relay({ tls: 'opportunistic' }))
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'auth_unavailable' })
})

t.test('a password is sent in plaintext if the route is configured without TLS', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 relay.example ESMTP
     C EHLO ...
     S 250-relay.example
     S 250 AUTH PLAIN
     C AUTH PLAIN ${base64('\0shop\0sëcret')}
     S 235 welcome
     ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx }, relay({ tls: 'none' }))
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

for (const tls of ['none', 'opportunistic', 'require'] as const)
  t.test(`without explicit permission no password is sent over TLS that is "${tls}"`, async t => {
    const inClear = `S 220 relay.example ESMTP
      C EHLO ...
      S 250-relay.example
      S 250 AUTH PLAIN`
    const mx = await scriptedServer(t, tls === 'none' ? inClear : secured('AUTH PLAIN'))
    const { agent } = testMta(t, { '192.0.2.25': mx }, relay({ tls, allowUnverifiedAuth: false }))
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'deferred',
      cause: 'config',
      subtype: 'auth_unavailable',
      summary: /the password is sent over verified TLS only/,
    })
  })

t.test('a password needs no permission with a valid certificate or on loopback', async t => {
  const dialogue = `C AUTH PLAIN ${base64('\0shop\0sëcret')}
    S 235 2.7.0 welcome
    ${mail}`
  const verified = await scriptedServer(t, `${secured('AUTH PLAIN')}\n${dialogue}`)
  const routes = relay({ host: 'mx.example', tls: 'verify', allowUnverifiedAuth: false })
  const zone = { 'mx.example': { A: ['192.0.2.25'] } }
  const { agent } = testMta(t, { '192.0.2.25': verified }, { ...routes, zone, trusted: certificate.cert })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
  const local = await scriptedServer(t, `${secured('AUTH PLAIN')}\n${dialogue}`)
  const here = testMta(t, { '127.0.0.1': local }, relay({ host: '127.0.0.1', allowUnverifiedAuth: false }))
  t.match(await here.agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})
