/** Connections that carry more than one message. */
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

t.test('the next message goes over the same connection, after RSET', async t => {
  const mx = await scriptedServer(t, `${hello} ${mail} ${reset} ${mail}`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered', tried: [{ reused: false }] })
  t.match(await agent.deliver(makeJob({ recipient: 'bob@example.com' }), goOn), {
    kind: 'delivered',
    tried: [{ reused: true }],
  })
  t.equal(mx.connections, 1)
})

t.test('with PIPELINING the RSET goes out together with the next envelope', async t => {
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

t.test('a connection is used again after a refused recipient', async t => {
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

t.test('an idle connection that died is replaced, and the message does not notice', async t => {
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

t.test('a server that refuses RSET refuses no message by it', async t => {
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

t.test('a fresh connection that dies is not replaced: the message is deferred', async t => {
  const mx = await scriptedServer(t, `${hello} \n C MAIL ... \n RESET`)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'connection_lost' })
})

t.test('after as many messages as allowed the connection ends with QUIT', async t => {
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

t.test('a connection that has been idle for its time ends with QUIT', async t => {
  const mx = await scriptedServer(t, `${hello} ${mail} \n C QUIT \n S 221 bye`)
  const { agent, clock } = testMta(t, { '192.0.2.25': mx })
  await agent.deliver(makeJob(), goOn)
  await clock.advance(5_000)
  await mx.played
})

t.test('beyond the number of idle connections the one that waited longest ends', async t => {
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

t.test('two routes to one host with different passwords share no connection', async t => {
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
