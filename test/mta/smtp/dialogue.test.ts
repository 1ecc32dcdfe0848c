/** The SMTP dialogue: each test shows what the server says and the resulting outcome. */
import t from 'tap'
import { scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta } from '../../support/smtp/mta.js'

t.test('without extensions the commands are sent one by one', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO mail.sender.example
     S 250 mx.example
     C MAIL FROM:<b+token@bounce.sender.example>
     S 250 2.1.0 Ok
     C RCPT TO:<ann@example.com>
     S 250 2.1.5 Ok
     C DATA
     S 354 go ahead
     M
     S 250 2.0.0 queued as 4711`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  const outcome = await agent.deliver(makeJob(), goOn)
  t.match(outcome, {
    kind: 'delivered',
    remoteMta: 'mx.example',
    reply: { code: 250, enhanced: '2.0.0', text: 'queued as 4711' },
    summary: 'mx.example answered 250 2.0.0 queued as 4711',
    tried: [{ host: 'mx.example', address: '192.0.2.25', port: 25, stage: 'final_dot', reused: false }],
  })
  t.equal(outcome.tried.length, 1)
  t.match(
    mx.messages[0]?.toString(),
    /^Message-ID: <01890a5d-ac96-774b-bcce-b302099a8057@mail\.sender\.example>\r$/m,
  )
  await agent.close()
  await mx.played
})

t.test('with PIPELINING envelope and DATA are sent in one group, with SIZE if offered', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example greets you
     S 250-PIPELINING
     S 250-SIZE 10485760
     S 250 8BITMIME
     C MAIL FROM:<b+token@bounce.sender.example> SIZE=...
     C RCPT TO:<ann@example.com>
     C DATA
     S 250 2.1.0 Ok
     S 250 2.1.5 Ok
     S 354 go ahead
     M
     S 250 2.0.0 queued`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
  t.equal(mx.messages.length, 1)
})

t.test('a server without EHLO gets HELO', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 old.example
     C EHLO mail.sender.example
     S 502 command not implemented
     C HELO mail.sender.example
     S 250 old.example
     C MAIL FROM:<b+token@bounce.sender.example>
     S 250 ok
     C RCPT TO:<ann@example.com>
     S 250 ok
     C DATA
     S 354 ok
     M
     S 250 ok`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('multi-line greetings, rejections and enhanced codes are parsed', async t => {
  const mx = await scriptedServer(
    t,
    `S 220-mx.example ESMTP
     S 220-We do not authorise the use of this system
     S 220 for unsolicited mail
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     RAW "550-5.1.1 The account does not"
     RAW " exist.\\r\\n550 5.1.1 See the help pages\\r\\n"`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'bounced',
    status: '5.1.1',
    cause: 'recipient',
    reply: { code: 550, enhanced: '5.1.1', text: 'The account does not exist. See the help pages' },
    tried: [{ stage: 'rcpt' }],
  })
})

t.test('a 421 in mid-session defers the message and closes the connection', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL FROM:<...>
     S 421 4.7.0 Too many connections, try again in 90 seconds`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    scope: 'source',
    retryAfterMs: 90_000,
    tried: [{ stage: 'mail', reply: { code: 421 } }],
  })
  await mx.played
})

t.test('a 421 ends a pipelined group', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 PIPELINING
     C MAIL FROM:<...>
     C RCPT TO:<...>
     C DATA
     S 250 ok
     S 421 4.3.2 shutting down`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    tried: [{ stage: 'rcpt', reply: { code: 421 } }],
  })
  await mx.played
})

t.test('if the recipient is rejected but DATA accepted, an empty message ends the group', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 PIPELINING
     C MAIL FROM:<...>
     C RCPT TO:<...>
     C DATA
     S 250 ok
     S 550 5.1.1 no such user
     S 354 go on
     C .
     S 250 queued, nevertheless`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'bounced',
    status: '5.1.1',
    tried: [{ stage: 'rcpt', reply: { code: 550 } }],
  })
})

t.test('if recipient and DATA are both rejected, the first rejection counts', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 PIPELINING
     C MAIL FROM:<...>
     C RCPT TO:<...>
     C DATA
     S 250 ok
     S 550 5.1.1 no such user
     S 503 5.5.1 no valid recipients`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'bounced', status: '5.1.1', reply: { code: 550 } })
})

t.test('a rejection counts even if the connection breaks before the remaining replies', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 PIPELINING
     C MAIL FROM:<...>
     C RCPT TO:<...>
     C DATA
     S 250 ok
     S 550 5.1.1 no such user
     CLOSE`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'bounced', status: '5.1.1' })
})

t.test('a rejection without an enhanced code is reported with a fitting one', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 556 this domain takes no mail`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'bounced', status: '5.1.10' })
})

t.test('a non-ASCII address is delivered to a server with SMTPUTF8', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 SMTPUTF8
     C MAIL FROM:<b+token@bounce.sender.example> SMTPUTF8
     S 250 ok
     C RCPT TO:<jürgen@example.com>
     S 250 ok
     C DATA
     S 354 ok
     M
     S 250 ok`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob({ recipient: 'jürgen@example.com' }), goOn), { kind: 'delivered' })
})

t.test('a non-ASCII address bounces with 5.6.7 if the server lacks SMTPUTF8', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob({ recipient: 'jürgen@example.com' }), goOn), {
    kind: 'bounced',
    status: '5.6.7',
    permanence: 'permanent',
  })
})
