/** The operator's TLS requirements for MX hosts and domains, combined with MTA-STS. */
import t from 'tap'
import type { TlsSite } from '../../../src/mta/mta-options.js'
import { goOn, makeJob } from '../../support/smtp/mta.js'
import { policyText, served, stsWorld } from '../../support/smtp/mta-sts.js'
import { MAIL_TAKEN } from '../../support/smtp/dialogues.js'
import { certificate, scriptedServer } from '../../support/smtp/scripted-server.js'

const handshake = `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250-mx.example
  S 250 STARTTLS
  C STARTTLS
  S 220 ready
  TLS`

const secured = `${handshake}
  C EHLO ...
  S 250 mx.example
  ${MAIL_TAKEN}`

const withoutTls = `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250 mx.example`

const noPolicy = { '_mta-sts.example.com': {} }

function mxSite(mx: string, tls: TlsSite['tls']): TlsSite {
  return { mx, domain: undefined, tls }
}

function domainSite(domain: string, tls: TlsSite['tls']): TlsSite {
  return { mx: undefined, domain, tls }
}

for (const [what, site] of [
  ['the MX host', mxSite('*.example', 'require')],
  ['the domain', domainSite('example.com', 'require')],
] as const)
  t.test(`a site that requires TLS, matched by ${what}, defers if TLS is not offered`, async t => {
    const mx = await scriptedServer(t, withoutTls)
    const { agent } = stsWorld(t, { '192.0.2.25': mx }, { tlsSites: [site], zone: noPolicy })
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'deferred',
      subtype: 'tls_unavailable',
      tried: [{ tlsPolicy: 'require', tlsPolicySource: 'site' }],
    })
  })

t.test('a site that requires TLS accepts any certificate', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent } = stsWorld(
    t,
    { '192.0.2.25': mx },
    { tlsSites: [mxSite('mx.example', 'require')], zone: noPolicy },
  )
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ tls: { verified: false } }] })
})

t.test('a site that verifies defers on an untrusted certificate', async t => {
  const mx = await scriptedServer(t, handshake)
  const { agent } = stsWorld(
    t,
    { '192.0.2.25': mx },
    { tlsSites: [mxSite('mx.example', 'verify')], zone: noPolicy },
  )
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'tls_untrusted' })
})

for (const site of [
  mxSite('mx2.example', 'verify'),
  mxSite('*.mx.example', 'verify'),
  mxSite('example.com', 'verify'),
  domainSite('mx.example', 'verify'),
  domainSite('*.example.com', 'verify'),
])
  t.test(`a site for ${site.mx ?? site.domain ?? ''} does not apply to another`, async t => {
    const mx = await scriptedServer(t, `${withoutTls} ${MAIL_TAKEN}`)
    const { agent } = stsWorld(t, { '192.0.2.25': mx }, { tlsSites: [site], zone: noPolicy })
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'delivered',
      tried: [{ tlsPolicy: 'opportunistic', tlsPolicySource: 'default' }],
    })
  })

t.test('the strictest of several sites applies, in any order', async t => {
  const tlsSites = [
    mxSite('*', 'opportunistic'),
    domainSite('example.com', 'verify'),
    mxSite('*.example', 'require'),
  ]
  const mx = await scriptedServer(t, handshake)
  const { agent } = stsWorld(t, { '192.0.2.25': mx }, { tlsSites, zone: noPolicy })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'tls_untrusted',
    tried: [{ tlsPolicy: 'verify', tlsPolicySource: 'site' }],
  })
})

t.test('a site cannot weaken an enforced policy', async t => {
  const mx = await scriptedServer(t, handshake)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { tlsSites: [mxSite('*', 'require')] })
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'mta_sts_failure',
    tried: [{ tlsPolicy: 'verify', tlsPolicySource: 'mta-sts' }],
  })
})

t.test('a testing policy cannot weaken a site', async t => {
  const mx = await scriptedServer(t, handshake)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { tlsSites: [mxSite('*', 'verify')] })
  http.answer(served(policyText({ mode: 'testing' })))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'tls_untrusted',
    tried: [{ tlsPolicySource: 'site', sts: { mode: 'testing', result: 'failed' } }],
  })
})

t.test('a weaker site leaves the policy in force', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent, http } = stsWorld(
    t,
    { '192.0.2.25': mx },
    { tlsSites: [mxSite('*', 'opportunistic')], trusted: certificate.cert },
  )
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ tlsPolicy: 'verify', tlsPolicySource: 'mta-sts' }],
  })
})

t.test('a static route keeps its own TLS policy, whatever the sites require', async t => {
  const mx = await scriptedServer(t, `${withoutTls} ${MAIL_TAKEN}`)
  const routes = [{ domain: '*', host: 'mx.example', port: 25, tls: 'opportunistic' }] as const
  const { agent } = stsWorld(t, { '192.0.2.25': mx }, { routes, tlsSites: [mxSite('*', 'verify')] })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ tlsPolicy: 'opportunistic', tlsPolicySource: 'route' }],
  })
})
