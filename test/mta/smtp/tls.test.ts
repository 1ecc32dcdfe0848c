/** STARTTLS under each policy, with broken and forged servers. */
import t from 'tap'
import type { Route } from '../../../src/mta/mta-options.js'
import { MAIL_TAKEN, STARTTLS_ASKED } from '../../support/smtp/dialogues.js'
import { certificate, scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta, timeouts } from '../../support/smtp/mta.js'

const secured = `${STARTTLS_ASKED}
  S 220 2.0.0 ready
  TLS
  C EHLO mail.sender.example
  S 250-mx.example
  S 250 SIZE 1000000`

const inClear = `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250-mx.example
  S 250 STARTTLS
  ${MAIL_TAKEN}`

function routed(parts: Partial<Route>): { routes: Route[] } {
  return { routes: [{ domain: '*', host: '192.0.2.25', port: 25, tls: 'opportunistic', ...parts }] }
}

t.test(
  'STARTTLS is used where STARTTLS_ASKED, whatever the certificate, and the trace describes it',
  async t => {
    const mx = await scriptedServer(t, `${secured} ${MAIL_TAKEN}`)
    const { agent } = testMta(t, { '192.0.2.25': mx })
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'delivered',
      tried: [
        {
          tls: {
            version: 'TLSv1.3',
            cipher: /^TLS_/,
            verified: false,
            unverifiedReason: 'self-signed certificate',
          },
        },
      ],
    })
  },
)

t.test('a trusted certificate that names the host is reported as verified', async t => {
  const mx = await scriptedServer(t, `${secured} ${MAIL_TAKEN}`)
  const { agent } = testMta(t, { '192.0.2.25': mx }, { trusted: certificate.cert })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ tls: { verified: true, unverifiedReason: undefined } }],
  })
})

t.test('a host whose handshake fails gets plaintext, for an hour without another try', async t => {
  const broken = `${STARTTLS_ASKED}
    S 220 ready
    RAW "this is no TLS\\r\\n"`
  const mx = await scriptedServer(t, broken, inClear, inClear, broken, inClear)
  const limits = { messagesPerConnection: 1, idleMs: 1, idleConnections: 1 }
  const { agent, clock } = testMta(t, { '192.0.2.25': mx }, { pool: limits })

  const first = await agent.deliver(makeJob(), goOn)
  t.match(first, { kind: 'delivered', tried: [{ stage: 'starttls', error: String }, { stage: 'final_dot' }] })
  t.equal(first.tried[1]?.tls, undefined)

  await clock.advance(59 * 60_000)
  const second = await agent.deliver(makeJob(), goOn)
  t.equal(second.tried.length, 1, 'TLS is not tried again within the hour')

  await clock.advance(60_001)
  const third = await agent.deliver(makeJob(), goOn)
  t.equal(third.tried.length, 2, 'after the hour it is')
  t.equal(mx.messages.length, 3)
})

t.test('a server that closes after STARTTLS gets plaintext', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n CLOSE`, inClear)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('a server that hangs in the handshake gets plaintext after the timeout', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n STALL`, inClear)
  const { agent, clock } = testMta(t, { '192.0.2.25': mx })
  const delivery = agent.deliver(makeJob(), goOn)
  await mx.reached(7)
  // The handshake's time begins when the 220 has arrived, some turns from now.
  while (mx.connections < 2) await clock.advance(timeouts.connectMs / 10)
  t.match(await delivery, {
    kind: 'delivered',
    tried: [{ stage: 'starttls', error: 'connection timed out' }, {}],
  })
})

t.test('a shutdown during the handshake defers the message, and nothing is sent in plaintext', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n STALL`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  const shutdown = new AbortController()
  const delivery = agent.deliver(makeJob(), shutdown.signal)
  await mx.reached(7)
  shutdown.abort()
  const outcome = await delivery
  t.match(outcome, { kind: 'deferred', subtype: 'shutdown', tried: [{ stage: 'starttls' }] })
  t.equal(outcome.tried.length, 1, 'no second try in clear')
})

t.test(
  'a server that temporarily rejects STARTTLS gets the mail in plaintext over the same connection',
  async t => {
    const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 454 4.7.0 TLS not available \n ${MAIL_TAKEN}`)
    const { agent } = testMta(t, { '192.0.2.25': mx })
    t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
    t.equal(mx.connections, 1)
  },
)

t.test('plaintext injected after the STARTTLS reply is not taken for replies under TLS', async t => {
  const mx = await scriptedServer(
    t,
    `${STARTTLS_ASKED}
     RAW "220 ready\\r\\n250 mx.example\\r\\n250 ok\\r\\n250 ok\\r\\n354 go on\\r\\n250 forged\\r\\n"
     TLS
     C EHLO mail.sender.example
     S 250 mx.example
     C MAIL FROM:<...>
     S 250 ok
     C RCPT TO:<...>
     S 550 5.1.1 no such user`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'bounced',
    status: '5.1.1',
    tried: [{ tls: { version: 'TLSv1.3' } }],
  })
})

t.test('extensions offered in plaintext do not count under TLS', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250-STARTTLS
     S 250-SIZE 1000
     S 250 PIPELINING
     C STARTTLS
     S 220 ready
     TLS
     C EHLO ...
     S 250 mx.example
     C MAIL FROM:<b+token@bounce.sender.example>
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     M
     S 250 ok`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('a route without TLS does not use STARTTLS', async t => {
  const mx = await scriptedServer(t, inClear)
  const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ tls: 'none' }))
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('a route that requires TLS defers if it is not offered', async t => {
  const mx = await scriptedServer(t, `S 220 mx.example ESMTP \n C EHLO ... \n S 250 mx.example`)
  const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ tls: 'require' }))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'tls_unavailable',
    tried: [{ stage: 'starttls', error: 'server does not offer STARTTLS' }],
  })
})

t.test(
  'a route that requires TLS defers if STARTTLS is rejected, and never falls back to plaintext',
  async t => {
    const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 554 5.7.0 not for you`)
    const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ tls: 'require' }))
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'deferred',
      tried: [{ stage: 'starttls' }],
      summary: /refused this server at STARTTLS, which says nothing about the recipient: 554/,
    })
    t.equal(mx.connections, 1)
  },
)

t.test(
  'a route that requires TLS defers if the handshake fails, and never falls back to plaintext',
  async t => {
    const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n RAW "this is no TLS\\r\\n"`)
    const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ tls: 'require' }))
    t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'tls_failed' })
    t.equal(mx.connections, 1)
  },
)

t.test('a route that requires TLS accepts any certificate', async t => {
  const mx = await scriptedServer(t, `${secured} ${MAIL_TAKEN}`)
  const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ tls: 'require' }))
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ tls: { verified: false } }] })
})

t.test('a route that verifies defers on an untrusted certificate', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n TLS`)
  const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ tls: 'verify' }))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'tls_untrusted',
    tried: [
      {
        stage: 'starttls',
        error: 'certificate not trusted: self-signed certificate',
        tls: { verified: false, unverifiedReason: 'self-signed certificate' },
      },
    ],
  })
})

t.test('a route that verifies defers on a certificate for another name', async t => {
  const mx = await scriptedServer(t, `${STARTTLS_ASKED} \n S 220 ready \n TLS`)
  const { agent } = testMta(
    t,
    { '192.0.2.25': mx },
    {
      ...routed({ tls: 'verify', host: 'relay.example' }),
      zone: { 'relay.example': { A: ['192.0.2.25'] } },
      trusted: certificate.cert,
    },
  )
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'tls_untrusted',
    tried: [{ tls: { unverifiedReason: 'certificate is for another name' } }],
  })
})

t.test('a route that verifies delivers with a valid chain and address', async t => {
  const mx = await scriptedServer(t, `${secured} ${MAIL_TAKEN}`)
  const { agent } = testMta(
    t,
    { '192.0.2.25': mx },
    { ...routed({ tls: 'verify' }), trusted: certificate.cert },
  )
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ tls: { verified: true } }] })
})

t.test('port 465 uses implicit TLS', async t => {
  const mx = await scriptedServer(
    t,
    `TLS
     S 220 relay.example ESMTP
     C EHLO ...
     S 250-relay.example
     S 250 STARTTLS
     ${MAIL_TAKEN}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx }, routed({ port: 465, tls: 'require' }))
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ port: 465, tls: { version: 'TLSv1.3' } }],
  })
})
