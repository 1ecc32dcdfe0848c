/** The inbound port as a foreign mail server meets it: the engine and the receiver together. */
import t, { type Test } from 'tap'
import { openSmtpService } from '../../src/smtp/service.js'
import { systemTcpServer } from '../../src/world/net/listen-tcp.js'
import { BOUNCE_DOMAIN, dsn, HOSTNAME, openInboundTest, sentMessage, signedFor } from '../support/inbound.js'
import { SmtpClient } from '../support/smtp/smtp-service.js'

async function openPort(t: Test, options: Parameters<typeof openInboundTest>[1] = {}) {
  const inbound = await openInboundTest(t, options)
  const service = openSmtpService({ hostname: HOSTNAME }, inbound.receiver, {
    clock: inbound.clock,
    log: inbound.log,
    tcpServer: systemTcpServer,
  })
  const { port } = await service.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    const closed = service.close(0)
    await inbound.clock.advance(1)
    await closed
  })
  const client = await SmtpClient.connect(port)
  t.teardown(() => client.cut())
  await client.readLine()
  await client.ehlo()
  const say = async (line: string): Promise<string> => {
    client.send(`${line}\r\n`)
    return (await client.readLine()) ?? '(closed)'
  }
  return { ...inbound, say }
}

t.test('a bounce comes in, takes effect, and nothing else is let through', async t => {
  const { say, database, settled, message } = await openPort(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const forged = signedFor(ann.id, ann.to, { version: 1, secret: Buffer.alloc(32, 9) })
  t.match(await say('MAIL FROM:<>'), /^250 /)
  t.equal(await say('RCPT TO:<someone@gmail.example>'), '550 5.7.1 relaying denied')
  t.equal(await say(`RCPT TO:<someone@${HOSTNAME}>`), '550 5.1.1 no such mailbox here')
  t.equal(await say(`RCPT TO:<${forged.returnPath}>`), '550 5.1.1 no such mailbox here')
  t.match(await say('DATA'), /^503 |^554 /)
  t.match(await say(`RCPT TO:<${ann.returnPath}>`), /^250 /)
  t.match(await say('DATA'), /^354 /)
  t.match(await say(`${dsn({ recipient: ann.to })}.`), /^250 2\.0\.0 stored as 1$/)
  await settled()
  t.equal((await message(ann.id)).status, 'bounced')
})

t.test('postmaster is there without a domain, and nobody can log in', async t => {
  const { say } = await openPort(t)
  t.match(await say('AUTH PLAIN AGEAYg=='), /^50\d /)
  t.match(await say('MAIL FROM:<someone@x.example>'), /^250 /)
  t.match(await say('RCPT TO:<Postmaster>'), /^250 /)
  t.match(await say(`RCPT TO:<abuse@${BOUNCE_DOMAIN}>`), /^250 /)
})

t.test(
  'of several nodes each receives what is for the hostname of another, but no bounces at it',
  async t => {
    const { say } = await openPort(t, { nodeNames: [HOSTNAME, 'mx2.example.net'] })
    t.match(await say('MAIL FROM:<someone@x.example>'), /^250 /)
    t.match(await say('RCPT TO:<dmarc@MX2.example.net>'), /^250 /)
    t.match(await say('RCPT TO:<someone@mx2.example.net>'), /^550 5\.1\.1 /)
    t.match(await say('RCPT TO:<dmarc@mx3.example.net>'), /^550 5\.7\.1 /)
  },
)
