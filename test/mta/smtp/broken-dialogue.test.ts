/** Servers that vanish, stall or violate the protocol, and our own shutdown: no message is lost or immediately duplicated. */
import t from 'tap'
import { scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta, timeouts } from '../../support/smtp/mta.js'

t.test('an unsolicited 421 during the message defers it', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     RAW "354 go on\\r\\n421 4.3.2 going down\\r\\n"
     CLOSE`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    tried: [{ stage: 'data', reply: { code: 421 } }],
  })
  t.equal(mx.messages.length, 0, 'the end of the message was not sent')
})

t.test('a connection that drops before the final dot defers the message', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     RESET`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    cause: 'transient',
    subtype: 'connection_lost',
    tried: [{ stage: 'rcpt', error: /connection/ }],
  })
})

t.test('a reply lost after the final dot defers the message and offers it to no other host', async t => {
  const dialogue = `
     S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     M
     CLOSE`
  const mx = await scriptedServer(t, dialogue)
  const { agent, dialler } = testMta(
    t,
    { '192.0.2.25': mx },
    {
      zone: {
        'example.com': { MX: ['10 mx.example', '20 mx2.example'] },
        'mx.example': { A: ['192.0.2.25'] },
        'mx2.example': { A: ['192.0.2.26'] },
      },
    },
  )
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'reply_lost',
    tried: [{ stage: 'final_dot' }],
  })
  t.same(dialler.dialled, ['192.0.2.25'])
})

t.test('a server silent after the final dot gets ten minutes', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     M
     STALL`,
  )
  const { agent, clock } = testMta(t, { '192.0.2.25': mx })
  const delivery = agent.deliver(makeJob(), goOn)
  await mx.reached(11)
  await clock.advance(timeouts.finalDotMs - 1)
  t.equal(clock.waiting, 1, 'it still waits')
  await clock.advance(1)
  t.match(await delivery, {
    kind: 'deferred',
    subtype: 'reply_lost',
    tried: [{ stage: 'final_dot', error: 'timed out waiting for a reply', durationMs: timeouts.finalDotMs }],
  })
})

t.test('a server that stops reading a large message is abandoned after the block timeout', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     STALL`,
  )
  const { agent, clock } = testMta(t, { '192.0.2.25': mx })
  const content = { ...makeJob().content, text: 'Much to say. '.repeat(2_000_000) }
  const delivery = agent.deliver(makeJob({ content }), goOn)
  await mx.reached(10)
  const over = new AbortController()
  void delivery.finally(() => over.abort())
  // What the kernel buffers leaves at once; from then on nothing moves.
  while (!over.signal.aborted) await clock.advance(timeouts.blockMs)
  t.match(await delivery, {
    kind: 'deferred',
    subtype: 'timeout',
    tried: [{ stage: 'data', error: 'timed out waiting for a reply' }],
  })
})

t.test('a rejection in mid-message counts, and the rest is not sent', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     C X-Postroad-ID: ...
     RAW "552 5.3.4 too big\\r\\n"
     STALL`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  const content = { ...makeJob().content, text: 'Much to say. '.repeat(2_000_000) }
  t.match(await agent.deliver(makeJob({ content }), goOn), {
    kind: 'bounced',
    status: '5.3.4',
    tried: [{ stage: 'data', reply: { code: 552 } }],
  })
})

for (const [what, greeting] of [
  ['is no SMTP', 'HTTP/1.1 400 Bad Request\\r\\n'],
  ['has a code out of range', '999 hello\\r\\n'],
  ['has a line without end', `220 ${'x'.repeat(3_000)}`],
  ['has lines without end', '220-x\\r\\n'.repeat(200)],
] as const)
  t.test(`a server whose greeting ${what} is abandoned and the message deferred`, async t => {
    const mx = await scriptedServer(t, `RAW "${greeting}"`)
    const { agent } = testMta(t, { '192.0.2.25': mx })
    t.match(await agent.deliver(makeJob(), goOn), {
      kind: 'deferred',
      subtype: 'protocol_violation',
      tried: [{ stage: 'greeting' }],
    })
    await mx.played
  })

t.test('a duplicate reply is not taken for the reply to the next command', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     RAW "250 ok\\r\\n250 ok\\r\\n"`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), {
    kind: 'deferred',
    subtype: 'protocol_violation',
    tried: [{ error: 'unsolicited reply 250' }],
  })
})

t.test('a reply sent before its command is not accepted', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     RAW "354 go on\\r\\n250 queued\\r\\n"`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'protocol_violation' })
})

t.test('a shutdown before the final dot defers the message immediately', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     STALL`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  const shutdown = new AbortController()
  const delivery = agent.deliver(makeJob(), shutdown.signal)
  await mx.reached(5)
  shutdown.abort()
  t.match(await delivery, { kind: 'deferred', subtype: 'shutdown', tried: [{ stage: 'mail' }] })
})

t.test('a shutdown while dialling defers the message immediately', async t => {
  const { agent, dialler } = testMta(t, { '192.0.2.25': 'silent' })
  const shutdown = new AbortController()
  const delivery = agent.deliver(makeJob(), shutdown.signal)
  while (dialler.dialled.length === 0) await new Promise(resolve => setImmediate(resolve))
  shutdown.abort()
  t.match(await delivery, { kind: 'deferred', subtype: 'shutdown', tried: [{ stage: 'connect' }] })
})

t.test('one shutdown signal ends many deliveries without a listener leak warning', async t => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const { agent, dialler } = testMta(t, { '*': 'silent' })
  const shutdown = new AbortController()
  const deliveries = Promise.all(Array.from({ length: 30 }, () => agent.deliver(makeJob(), shutdown.signal)))
  while (dialler.dialled.length < 30) await new Promise(resolve => setImmediate(resolve))
  shutdown.abort()
  t.ok((await deliveries).every(outcome => outcome.kind === 'deferred'))
  t.same(warnings, [])
})

t.test('a shutdown after the final dot waits for the reply', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     M
     S 250 2.0.0 queued`,
  )
  const { agent } = testMta(t, { '192.0.2.25': mx })
  const shutdown = new AbortController()
  const delivery = agent.deliver(makeJob(), shutdown.signal)
  await mx.reached(10)
  shutdown.abort()
  t.match(await delivery, { kind: 'delivered' })
})
