/** The effect of a domain's MTA-STS policy on delivery and trace. */
import t from 'tap'
import type { FakeZone } from '../../../src/world/dns/fake-dns.js'
import { goOn, makeJob } from '../../support/smtp/mta.js'
import { announced, policyText, served, stsWorld } from '../../support/smtp/mta-sts.js'
import { MAIL_TAKEN, STARTTLS_ASKED } from '../../support/smtp/dialogues.js'
import { certificate, scriptedServer } from '../../support/smtp/scripted-server.js'

const secured = `${STARTTLS_ASKED}
  S 220 2.0.0 ready
  TLS
  C EHLO mail.sender.example
  S 250 mx.example
  ${MAIL_TAKEN}`

const handshake = `${STARTTLS_ASKED}
  S 220 2.0.0 ready
  TLS`

const withoutTls = `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250 mx.example`

const trusted = certificate.cert

const stsFailure = { kind: 'deferred', cause: 'policy', scope: 'domain', subtype: 'mta_sts_failure' }

const twoExchangers: FakeZone = {
  'example.com': { MX: ['10 mx1.other', '20 mx.example'] },
  'mx1.other': { A: ['192.0.2.1', '192.0.2.2'] },
}

t.test('under an enforced policy mail goes over TLS to a listed host with a valid certificate', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [
      {
        tls: { verified: true },
        tlsPolicy: 'verify',
        tlsPolicySource: 'mta-sts',
        sts: { mode: 'enforce', result: 'passed' },
      },
    ],
  })
})

t.test('a listed host may match by its left-most label', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText({ mx: ['mx.other', '*.EXAMPLE'] })))
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ sts: { result: 'passed' } }] })
})

t.test(
  'under an enforced policy an untrusted certificate defers, and nothing is sent in plaintext',
  async t => {
    const mx = await scriptedServer(t, handshake)
    const { agent, http } = stsWorld(t, { '192.0.2.25': mx })
    http.answer(served(policyText()))
    t.match(await agent.deliver(makeJob(), goOn), {
      ...stsFailure,
      permanence: 'transient',
      summary:
        'mx.example [192.0.2.25]: MTA-STS requires TLS with a valid certificate: self-signed certificate',
      tried: [
        { stage: 'starttls', sts: { mode: 'enforce', result: 'failed', reason: 'self-signed certificate' } },
      ],
    })
    t.equal(mx.connections, 1)
    t.equal(mx.messages.length, 0)
  },
)

t.test('under an enforced policy a certificate for another name defers', async t => {
  const mx = await scriptedServer(t, handshake)
  const zone = { 'example.com': { MX: ['10 mx9.example'] }, 'mx9.example': { A: ['192.0.2.25'] } }
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted, zone })
  http.answer(served(policyText({ mx: ['mx9.example'] })))
  t.match(await agent.deliver(makeJob(), goOn), {
    ...stsFailure,
    tried: [{ sts: { reason: 'certificate is for another name' } }],
  })
})

for (const [what, script, reason] of [
  ['is not offered', withoutTls, 'server does not offer STARTTLS'],
  ['is refused for now', `${STARTTLS_ASKED} \n S 454 4.7.0 not now`, 'STARTTLS was refused'],
  ['is refused for good', `${STARTTLS_ASKED} \n S 554 5.7.0 never`, 'STARTTLS was refused'],
  ['is broken', `${STARTTLS_ASKED} \n S 220 ready \n RAW "this is no TLS\\r\\n"`, String],
] as const)
  t.test(
    `under an enforced policy mail is deferred if STARTTLS ${what}, and nothing is sent in plaintext`,
    async t => {
      const mx = await scriptedServer(t, script)
      const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
      http.answer(served(policyText()))
      t.match(await agent.deliver(makeJob(), goOn), {
        ...stsFailure,
        tried: [{ stage: 'starttls', sts: { mode: 'enforce', result: 'failed', reason } }],
      })
      t.equal(mx.connections, 1)
    },
  )

t.test('a server too busy for STARTTLS has not failed the policy', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 421 4.3.2 too busy`)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText()))
  const outcome = await agent.deliver(makeJob(), goOn)
  t.match(outcome, { kind: 'deferred', reply: { code: 421 }, tried: [{ sts: { mode: 'enforce' } }] })
  t.notMatch(outcome, { subtype: 'mta_sts_failure' })
})

t.test('a plaintext fallback remembered for other domains does not apply under a policy', async t => {
  const broken = `${STARTTLS_ASKED} \n S 220 ready \n RAW "this is no TLS\\r\\n"`
  const mx = await scriptedServer(
    t,
    broken,
    `S 220 mx.example \n C EHLO ... \n S 250 STARTTLS \n ${MAIL_TAKEN}`,
    broken,
  )
  const zone = { 'lax.example': { MX: ['10 mx.example'] } }
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted, zone })
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob({ recipient: 'ann@lax.example' }), goOn), { kind: 'delivered' })
  t.match(await agent.deliver(makeJob(), goOn), stsFailure)
  t.equal(mx.messages.length, 1)
})

t.test('an unreachable host is not a policy failure', async t => {
  const { agent, http } = stsWorld(t, {}, { trusted })
  http.answer(served(policyText()))
  const outcome = await agent.deliver(makeJob(), goOn)
  t.match(outcome, { kind: 'deferred', cause: 'transient', subtype: 'host_unreachable' })
  t.same(outcome.tried[0]?.sts, { mode: 'enforce' })
})

t.test('under an enforced policy the next listed host is tried if the first fails', async t => {
  const first = await scriptedServer(t, withoutTls)
  const second = await scriptedServer(t, secured)
  const { agent, http } = stsWorld(
    t,
    { '192.0.2.1': first, '192.0.2.2': 'refused', '192.0.2.25': second },
    { trusted, zone: twoExchangers },
  )
  http.answer(served(policyText({ mx: ['mx1.other', 'mx.example'] })))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    remoteMta: 'mx.example',
    tried: [{ sts: { result: 'failed' } }, {}, { sts: { result: 'passed' } }],
  })
})

t.test('under an enforced policy an unlisted host is skipped, and the trace says so', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent, http, dialler } = stsWorld(t, { '192.0.2.25': mx }, { trusted, zone: twoExchangers })
  http.answer(served(policyText()))
  const outcome = await agent.deliver(makeJob(), goOn)
  t.match(outcome, {
    kind: 'delivered',
    remoteMta: 'mx.example',
    tried: [
      {
        host: 'mx1.other',
        stage: 'resolve',
        error: 'not tried: not in the MTA-STS policy',
        sts: { mode: 'enforce', result: 'failed', reason: 'the host is not listed in the policy' },
      },
      { host: 'mx.example', sts: { result: 'passed' } },
    ],
  })
  t.equal(outcome.tried.length, 2)
  t.same(dialler.dialled, ['192.0.2.25'])
})

t.test('if an enforced policy lists no host, the mail is deferred and no host dialled', async t => {
  const { agent, http, dialler } = stsWorld(t, {}, { trusted })
  http.answer(served(policyText({ mx: ['*.mx.example', 'example'] })))
  t.match(await agent.deliver(makeJob(), goOn), {
    ...stsFailure,
    permanence: 'transient',
    summary: 'the MTA-STS policy of example.com lists no mail exchanger that has an address',
    tried: [{ host: 'mx.example', stage: 'resolve' }],
  })
  t.same(dialler.dialled, [])
})

t.test('mail deferred by an enforced policy is delivered once a new one allows it', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent, http, zone } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText({ mx: ['old.example'] }))).answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), stsFailure)
  zone['_mta-sts.example.com'] = announced('2')
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('an enforced policy holds when DNS and the policy host fail', async t => {
  const mx = await scriptedServer(t, withoutTls, withoutTls)
  const { agent, http, zone } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), stsFailure)
  zone['_mta-sts.example.com'] = 'servfail'
  t.match(await agent.deliver(makeJob(), goOn), stsFailure)
})

t.test('an implicit MX is checked like any host', async t => {
  const zone = { 'example.com': { A: ['192.0.2.25'] } }
  const { agent, http, dialler } = stsWorld(t, {}, { trusted, zone })
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), stsFailure)
  t.same(dialler.dialled, [])
})

for (const [what, scripts, reason] of [
  [
    'TLS is broken',
    [`${STARTTLS_ASKED} \n S 220 ready \n RAW "no TLS\\r\\n"`, `${withoutTls} ${MAIL_TAKEN}`],
    'no TLS',
  ],
  ['TLS is not offered', [`${withoutTls} ${MAIL_TAKEN}`], 'no TLS'],
  ['the certificate is not trusted', [secured], 'self-signed certificate'],
] as const)
  t.test(`under a testing policy mail is delivered if ${what}, and the trace says so`, async t => {
    const mx = await scriptedServer(t, ...scripts)
    const { agent, http } = stsWorld(t, { '192.0.2.25': mx })
    http.answer(served(policyText({ mode: 'testing' })))
    const outcome = await agent.deliver(makeJob(), goOn)
    t.equal(outcome.kind, 'delivered')
    t.match(outcome.tried.at(-1), {
      tlsPolicy: 'opportunistic',
      tlsPolicySource: 'default',
      sts: { mode: 'testing', result: 'failed', reason },
    })
  })

t.test('under a testing policy an unlisted host gets the mail', async t => {
  const mx = await scriptedServer(t, secured)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText({ mode: 'testing', mx: ['other.example'] })))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ sts: { mode: 'testing', result: 'failed', reason: 'the host is not listed in the policy' } }],
  })
})

t.test(
  'if an announced policy cannot be fetched, mail is delivered without one and the trace says why',
  async t => {
    const mx = await scriptedServer(t, `${withoutTls} ${MAIL_TAKEN}`)
    const { agent, http } = stsWorld(t, { '192.0.2.25': mx })
    http.answer(served('', { status: 404 }))
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'delivered',
      tried: [
        { tlsPolicy: 'opportunistic', sts: { mode: 'unavailable', reason: 'the policy host answered 404' } },
      ],
    })
  },
)

t.test('a domain without a policy has no policy in its trace', async t => {
  const mx = await scriptedServer(t, `${withoutTls} ${MAIL_TAKEN}`)
  const { agent } = stsWorld(t, { '192.0.2.25': mx }, { zone: { '_mta-sts.example.com': {} } })
  const { tried } = await agent.deliver(makeJob(), goOn)
  t.match(tried, [{ tlsPolicy: 'opportunistic', tlsPolicySource: 'default' }])
  t.notOk(tried[0] && 'sts' in tried[0])
})

t.test('a static route overrides the policy, which is not even looked up', async t => {
  const mx = await scriptedServer(t, `${withoutTls} ${MAIL_TAKEN}`)
  const routes = [{ domain: 'example.com', host: '192.0.2.25', port: 25, tls: 'none' }] as const
  const { agent, resolver } = stsWorld(t, { '192.0.2.25': mx }, { routes })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ tlsPolicy: 'none', tlsPolicySource: 'route', sts: undefined }],
  })
  t.same(resolver.asked, [])
})

t.test('a shutdown does not wait for a silent policy host', async t => {
  const { agent, http, dialler } = stsWorld(t, {}, { trusted })
  const shutdown = new AbortController()
  http.request = request => {
    http.requests.push(request)
    shutdown.abort()
    return new Promise(() => {})
  }
  t.match(await agent.deliver(makeJob(), shutdown.signal), { kind: 'deferred', subtype: 'shutdown' })
  t.equal(http.requests.length, 1)
  t.same(dialler.dialled, [])
})

t.test('a shutdown during the handshake is not a policy failure', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n STALL`)
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText()))
  const shutdown = new AbortController()
  const delivery = agent.deliver(makeJob(), shutdown.signal)
  await mx.reached(7)
  shutdown.abort()
  t.match(await delivery, { kind: 'deferred', subtype: 'shutdown' })
})

t.test('a rejection after a satisfied policy is classified as usual', async t => {
  const mx = await scriptedServer(
    t,
    `${handshake}
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 550 5.1.1 no such user`,
  )
  const { agent, http } = stsWorld(t, { '192.0.2.25': mx }, { trusted })
  http.answer(served(policyText()))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'bounced',
    status: '5.1.1',
    tried: [{ sts: { mode: 'enforce', result: 'passed' } }],
  })
})
