/** Connections reused for several messages. */
import t from 'tap'
import { scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta } from '../../support/smtp/mta.js'

const hello = `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250 mx.example`

const mail = `
  C MAIL FROM:<...>
  S 250 ok
  C RCPT TO:<...>
  S 250 ok
  C DATA
  S 354 go on
  M
  S 250 ok`

const reset = `
  C RSET
  S 250 ok`

t.test('the next message uses the same connection, after RSET', async t => {
  const mx = await scriptedServer(t, `${hello} ${mail} ${reset} ${mail}`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ reused: false }] })
  t.match(await agent.deliver(makeJob({ recipient: 'bob@example.com' }), goOn), {
    kind: 'delivered',
    tried: [{ reused: true }],
  })
  t.equal(mx.connections, 1)
})

t.test('with PIPELINING the RSET is sent with the next envelope', async t => {
  const group = `
    C MAIL FROM:<...>
    C RCPT TO:<...>
    C DATA`
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 PIPELINING
     ${group}
     S 250 ok
     S 250 ok
     S 354 go on
     M
     S 250 ok
     C RSET
     ${group}
     S 250 flushed
     S 250 ok
     S 250 ok
     S 354 go on
     M
     S 250 ok`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ reused: true }] })
})

t.test('a connection is reused after a rejected recipient', async t => {
  const mx = await scriptedServer(
    t,
    `${hello}
     C MAIL ...
     S 250 ok
     C RCPT TO:<nobody@example.com>
     S 550 5.1.1 no such user
     ${reset} ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob({ recipient: 'nobody@example.com' }), goOn), { kind: 'bounced' })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('a dead idle connection is replaced without affecting the message', async t => {
  const mx = await scriptedServer(t, `${hello} ${mail} \n C RSET \n RESET`, `${hello} ${mail}`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [
      { reused: true, stage: 'mail' },
      { reused: false, stage: 'final_dot' },
    ],
  })
  t.equal(mx.messages.length, 2)
})

t.test('an idle connection that the server ends with 421 is replaced', async t => {
  const mx = await scriptedServer(
    t,
    `${hello} ${mail} \n C RSET \n S 421 4.4.2 idle for too long`,
    `${hello} ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
  t.equal(mx.connections, 2)
})

t.test('a rejected RSET does not reject the message', async t => {
  const mx = await scriptedServer(t, `${hello} ${mail} \n C RSET \n S 502 5.5.1 what?`, `${hello} ${mail}`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ reused: true }, { reused: false }],
  })
})

t.test('an idle connection that ends the envelope with 421 is replaced', async t => {
  const mx = await scriptedServer(
    t,
    `${hello} ${mail} ${reset} \n C MAIL ... \n S 421 4.7.0 enough for one connection`,
    `${hello} ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ reused: true }, { reused: false }],
  })
})

t.test('a new connection that dies is not replaced: the message is deferred', async t => {
  const mx = await scriptedServer(t, `${hello} \n C MAIL ... \n RESET`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'connection_lost' })
})

t.test('after the maximum number of messages the connection ends with QUIT', async t => {
  const mx = await scriptedServer(
    t,
    `${hello} ${mail} ${reset} ${mail} \n C QUIT \n S 221 bye`,
    `${hello} ${mail}`,
  )
  const pool = { messagesPerConnection: 2, idleMs: 5_000, idleConnections: 10 }
  const { agent } = testMta(t, { '192.0.2.25': mx }, { pool })
  for (let count = 0; count < 3; count++) t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
  t.equal(mx.connections, 2)
})

t.test('a connection idle for too long ends with QUIT', async t => {
  const mx = await scriptedServer(t, `${hello} ${mail} \n C QUIT \n S 221 bye`)
  const { agent, clock } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  await clock.advance(5_000)
  await mx.played
})

t.test('beyond the limit of idle connections the oldest is closed', async t => {
  const zone = {
    'one.example': { A: ['192.0.2.1'] },
    'two.example': { A: ['192.0.2.2'] },
  }
  const one = await scriptedServer(t, `${hello} ${mail} \n C QUIT \n S 221 bye`)
  const two = await scriptedServer(t, `${hello} ${mail} ${reset} ${mail}`)
  const pool = { messagesPerConnection: 10, idleMs: 5_000, idleConnections: 1 }
  const { agent } = testMta(t, { '192.0.2.1': one, '192.0.2.2': two }, { zone, pool })
  await agent.deliver(makeJob({ recipient: 'ann@one.example' }), goOn)
  await agent.deliver(makeJob({ recipient: 'ann@two.example' }), goOn)
  await one.played
  t.match(await agent.deliver(makeJob({ recipient: 'ann@two.example' }), goOn), { tried: [{ reused: true }] })
})

t.test('routes to one host with different passwords do not share connections', async t => {
  const session = (password: string) => `
    S 220 relay.example ESMTP
    C EHLO ...
    S 250-relay.example
    S 250 AUTH PLAIN
    C AUTH PLAIN ${Buffer.from(`\0shop\0${password}`).toString('base64')}
    S 235 welcome
    ${mail}`
  const mx = await scriptedServer(t, session('one'), session('two'))
  const route = { host: '192.0.2.25', port: 25, tls: 'none', username: 'shop' } as const
  const { agent } = testMta(
    t,
    { '192.0.2.25': mx },
    {
      routes: [
        { ...route, domain: 'one.example', password: 'one', allowUnverifiedAuth: true },
        { ...route, domain: 'two.example', password: 'two', allowUnverifiedAuth: true },
      ],
    },
  )
  await agent.deliver(makeJob({ recipient: 'ann@one.example' }), goOn)
  await agent.deliver(makeJob({ recipient: 'ann@two.example' }), goOn)
  t.equal(mx.messages.length, 2)
})

for (const reply of [
  '500 5.5.2 what?',
  '501 5.5.4 syntax error',
  '502 5.5.1 not implemented',
  '503 5.5.1 bad sequence of commands',
  '504 5.5.4 parameter not implemented',
]) {
  const toMail = `${reset} \n C MAIL ... \n S ${reply}`
  const toRcpt = `${reset} \n C MAIL ... \n S 250 ok \n C RCPT ... \n S ${reply}`
  const toData = `${reset} \n C MAIL ... \n S 250 ok \n C RCPT ... \n S 250 ok \n C DATA \n S ${reply}`

  for (const [command, confusion] of [
    ['MAIL', toMail],
    ['RCPT', toRcpt],
    ['DATA', toData],
  ] as const)
    t.test(`"${reply}" to ${command} on a reused connection is tried again on a new one`, async t => {
      const mx = await scriptedServer(
        t,
        `${hello} ${mail} ${confusion} \n C QUIT \n S 221 bye`,
        `${hello} ${mail}`,
      )
      const { agent } = testMta(t, { '192.0.2.25': mx })
      await agent.deliver(makeJob(), goOn)
      t.match(await agent.deliver(makeJob(), goOn), {
        kind: 'delivered',
        tried: [{ reused: true }, { reused: false, stage: 'final_dot' }],
      })
      t.equal(mx.connections, 2)
    })

  t.test(`"${reply}" to MAIL defers the message if a new connection answers the same`, async t => {
    const fresh = `${hello} \n C MAIL ... \n S ${reply}`
    const mx = await scriptedServer(t, `${hello} ${mail} ${toMail}`, fresh)
    const { agent } = testMta(t, { '192.0.2.25': mx })
    await agent.deliver(makeJob(), goOn)
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'deferred',
      permanence: 'transient',
      subtype: 'protocol_error',
      summary: /says nothing about the recipient/,
    })
    t.equal(mx.connections, 2, 'a new connection is tried once')
  })

  t.test(`"${reply}" to MAIL on a first connection defers the message`, async t => {
    const mx = await scriptedServer(t, `${hello} \n C MAIL ... \n S ${reply}`)
    const { agent } = testMta(t, { '192.0.2.25': mx })
    t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'protocol_error' })
  })
}

t.test('a connection closed at RCPT without 421 is replaced if it was a reused one', async t => {
  const mx = await scriptedServer(
    t,
    `${hello} ${mail} ${reset} \n C MAIL ... \n S 250 ok \n C RCPT ... \n CLOSE`,
    `${hello} ${mail}`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'delivered',
    tried: [{ reused: true }, { reused: false }],
  })
})

t.test('after a confused session, the verdict of the new connection about the recipient counts', async t => {
  const mx = await scriptedServer(
    t,
    `${hello} ${mail} ${reset} \n C MAIL ... \n S 503 5.5.1 bad sequence`,
    `${hello} \n C MAIL ... \n S 250 ok \n C RCPT ... \n S 550 5.1.1 no such user`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'bounced', subtype: 'no_such_mailbox' })
})

t.test('a malformed recipient address refused with 501 still bounces', async t => {
  const mx = await scriptedServer(
    t,
    `${hello} \n C MAIL ... \n S 250 ok \n C RCPT ... \n S 501 5.1.3 bad recipient address syntax`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'bounced', subtype: 'bad_address_syntax' })
})

t.test('a 503 to MAIL is no verdict even if its text blames the sender', async t => {
  const mx = await scriptedServer(t, `${hello} \n C MAIL ... \n S 503 sender rejected, authenticate first`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred' })
})
