/** Limits across sessions, timeouts, shutdown and certificates of the SMTP service. */
import { mkdtempSync, writeFileSync, copyFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { X509Certificate } from 'node:crypto'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t from 'tap'
import { addressKey } from '../../src/world/net/ip-address.js'
import { openSmtpService } from '../../src/smtp/service.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemTcpServer } from '../../src/world/net/listen-tcp.js'
import { openTlsCertificate } from '../../src/world/tls/tls-certificate.js'
import { KeepingReceiver, SmtpClient, smtpService } from '../support/smtp/smtp-service.js'
import { until } from '../support/until.js'

t.test('a thousand idle clients do not block others', async t => {
  const { port, service, dialogue } = await smtpService(t, {
    limits: { sessions: 2_000, sessionsPerAddress: 2_000 },
  })
  const idle = await Promise.all(Array.from({ length: 1_000 }, () => SmtpClient.connect(port)))
  await Promise.all(idle.map(client => client.readLine()))
  t.equal(service.sessionCount, 1_000)
  await dialogue(`
    MAIL
    C BDAT 0 LAST
    S 250 ...
  `)
  for (const client of idle) client.cut()
  await until('the sessions to end', () => service.sessionCount === 0)
})

t.test('sessions are limited in total and per address', async t => {
  const { port, service, dialogue } = await smtpService(t, { limits: { sessions: 3, sessionsPerAddress: 2 } })
  const one = await SmtpClient.connect(port)
  const two = await SmtpClient.connect(port)
  await Promise.all([one.readLine(), two.readLine()])
  await dialogue(`
    S 421 4.7.0 ...
    END
  `)
  const elsewhere = await SmtpClient.connect(port, false, '127.0.0.2')
  t.match(await elsewhere.readLine(), /^220 /)
  const late = await SmtpClient.connect(port, false, '127.0.0.3')
  t.match(await late.readLine(), /^220 /, 'who has none is served before who has two')
  t.match(await one.readLine(), /^421 4\.3\.2 /)
  const tooLate = await SmtpClient.connect(port, false, '127.0.0.4')
  t.match(await tooLate.readLine(), /^421 4\.3\.2 /)
  one.cut()
  late.cut()
  await until('one to be gone', () => service.sessionCount === 2)
  await dialogue(`
    C NOOP
    S 250 ...
  `)
  for (const client of [two, elsewhere, late]) client.cut()
})

t.test('under pressure silent clients are closed to make room for those who log in', async t => {
  const { port, service, dialogue, clock } = await smtpService(t, {
    auth: { isRequired: true, isAllowedInClear: true },
    limits: { sessions: 10, sessionsPerAddress: 10 },
  })
  const open = async (address: string) => {
    const client = await SmtpClient.connect(port, false, address)
    return { client, greeting: await client.readLine() }
  }
  const user = await open('127.0.0.9')
  await user.client.ehlo()
  user.client.send(`AUTH PLAIN ${Buffer.from('\0ann\0secret').toString('base64')}\r\n`)
  t.match(await user.client.readLine(), /^235 /)
  const silent = [user]
  for (const n of [1, 1, 1, 1]) silent.push(await open(`127.0.0.${n}`))
  await clock.advance(31_000)
  t.equal(service.sessionCount, 5, 'half of all: everybody is waited for')
  for (const n of [2, 2, 3, 3, 4]) silent.push(await open(`127.0.0.${n}`))
  t.equal(service.sessionCount, 10)
  // Commands that bring nothing on are no better than silence.
  silent[9]!.client.send('NOOP\r\n')
  t.match(await silent[9]!.client.readLine(), /^250 /)
  await clock.advance(2_000)
  for (const { client } of silent.slice(1, 5)) {
    t.match(await client.readLine(), /^421 4\.3\.2 Server busy/)
    client.cut()
  }
  await until('those are gone', () => service.sessionCount === 6)
  await clock.advance(30_000)
  for (const { client } of silent.slice(5)) {
    t.match(await client.readLine(), /^421 4\.3\.2 /)
    client.cut()
  }
  await until('all silent ones are gone', () => service.sessionCount === 1)
  user.client.send('NOOP\r\n')
  t.match(await user.client.readLine(), /^250 /, 'who has logged in stays')
  await dialogue('S 220 ...')
  user.client.cut()
})

t.test('a few addresses cannot occupy all sessions', async t => {
  const { port, service } = await smtpService(t, { limits: { sessions: 40, sessionsPerAddress: 20 } })
  const clients: SmtpClient[] = []
  for (let address = 1; address <= 4; address += 1)
    for (let n = 0; n < 20; n += 1) {
      const client = await SmtpClient.connect(port, false, `127.0.0.${address}`)
      t.match(await client.readLine(), /^(?:220|421 4\.7\.0) /)
      clients.push(client)
    }
  t.ok(service.sessionCount < 38, `${service.sessionCount} are taken`)
  const newcomer = await SmtpClient.connect(port, false, '127.0.0.77')
  t.match(await newcomer.readLine(), /^220 /)
  for (const client of [...clients, newcomer]) client.cut()
})

t.test('silent sessions from many addresses give way to new addresses', async t => {
  const { port } = await smtpService(t, { limits: { sessions: 100, sessionsPerAddress: 49 } })
  const silent: SmtpClient[] = []
  for (let n = 0; n < 49; n += 1)
    await Promise.all(
      Array.from({ length: 30 }, async (_, network) => {
        const client = await SmtpClient.connect(port, false, `127.0.${network + 1}.1`)
        silent.push(client)
      }),
    )
  const greetings: (string | undefined)[] = []
  for (let n = 1; n <= 48; n += 1) {
    const client = await SmtpClient.connect(port, false, `127.0.${100 + n}.1`)
    greetings.push((await client.readLine())?.slice(0, 3))
    client.send('QUIT\r\n')
    greetings.push((await client.readLine())?.slice(0, 3))
    client.cut()
  }
  t.same(greetings, Array(48).fill(['220', '221']).flat())
  for (const client of silent) client.cut()
})

t.test('connections per minute are limited', async t => {
  const { dialogue, clock } = await smtpService(t, { limits: { connectionsPerMinute: 2 } })
  await dialogue('S 220 ...')
  await dialogue('S 220 ...')
  await dialogue('S 421 4.7.0 ...\nEND')
  await clock.advance(60_000)
  await dialogue('S 220 ...')
})

t.test('IPv6 clients are counted by /64', async t => {
  t.equal(addressKey('192.0.2.1'), '192.0.2.1')
  t.equal(addressKey('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  t.equal(addressKey('2001:DB8:1:2::1'), '2001:db8:1:2::/64')
  t.equal(addressKey('2001:db8::1'), '2001:db8:0:0::/64')
  t.equal(addressKey('2001:0db8::'), '2001:db8:0:0::/64')
  t.equal(addressKey('::1'), '0:0:0:0::/64')
  t.equal(addressKey('fe80::1%eth0'), 'fe80:0:0:0::/64')
  t.equal(addressKey('64:ff9b::192.0.2.1'), '64:ff9b:0:0::/64')
})

t.test('a client that speaks before the greeting is rejected; one that waits is greeted', async t => {
  const { port, dialogue, clock, log } = await smtpService(t, { greetingDelayMs: 1_000 })
  await dialogue(`
    RAW "EHLO x\\r\\n"
    S 554 5.5.0 ...
    END
  `)
  t.match(log.lines[0], { level: 'warn', event: 'smtp client spoke before the greeting' })
  const client = await SmtpClient.connect(port)
  const greeting = client.readLine()
  await until('the delay to begin', () => clock.waiting >= 2)
  await clock.advance(1_000)
  t.match(await greeting, /^220 /)
  client.cut()
})

t.test('silence between commands and within a message ends the session with 421', async t => {
  const { port, receiver, clock } = await smtpService(t, {
    timeouts: { commandMs: 300_000, dataBlockMs: 180_000 },
  })
  const silent = await SmtpClient.connect(port)
  await silent.readLine()
  await clock.advance(290_000)
  await silent.ehlo()
  await clock.advance(290_000)
  silent.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\n')
  for (let replies = 0; replies < 3; replies++) t.match(await silent.readLine(), /^[23]/)
  await clock.advance(182_000)
  t.match(await silent.readLine(), /^421 4\.4\.2 /)
  t.equal(await silent.readLine(), undefined)
  t.same(receiver.abandoned, ['a@x.example'])
})

t.test('a stalled handshake is cut off', async t => {
  const { port, service, clock } = await smtpService(t, { isImplicitTls: true })
  const client = await SmtpClient.connect(port)
  await until('the connection to be taken', () => service.sessionCount === 1)
  await clock.advance(61_000)
  t.equal(await client.readLine(), undefined)
  await until('the session to end', () => service.sessionCount === 0)
})

t.test('a trickling client is stopped by the session time limit', async t => {
  const { port, clock } = await smtpService(t, { timeouts: { commandMs: 10_000, sessionMs: 60_000 } })
  const slow = await SmtpClient.connect(port)
  await slow.readLine()
  for (let seconds = 0; seconds < 60; seconds += 6) {
    slow.send('NOOP\r\n')
    t.match(await slow.readLine(), /^250 /)
    await clock.advance(6_000)
  }
  t.match(await slow.readLine(), /^421 4\.4\.2 /)
})

t.test('a slow receiver does not time out the client', async t => {
  let finish: () => void = () => {}
  class Slow extends KeepingReceiver {
    override finish(): Promise<void> {
      return new Promise(resolve => {
        finish = resolve
      })
    }
  }
  const { port, clock, receiver } = await smtpService(t, { receiver: new Slow() })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  await client.ehlo()
  client.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nBDAT 0 LAST\r\n')
  for (let replies = 0; replies < 2; replies++) await client.readLine()
  await clock.advance(10_000_000)
  finish()
  t.match(await client.readLine(), /^250 2\.0\.0 Queued/)
  t.equal(receiver.messages.length, 1)
  client.cut()
})

t.test('a session ends after its maximum number of messages', async t => {
  const { dialogue } = await smtpService(t, { limits: { transactions: 1 } })
  await dialogue(`
    MAIL
    C BDAT 0 LAST
    S 250 ...
    C MAIL FROM:<a@x.example>
    S 421 4.7.0 ...
    END
  `)
})

t.test('closing sends 421 to idle clients and lets a message finish', async t => {
  const { port, service, receiver } = await smtpService(t)
  const [idle, busy] = [await SmtpClient.connect(port), await SmtpClient.connect(port)]
  await Promise.all([idle.readLine(), busy.readLine()])
  await busy.ehlo()
  busy.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\n')
  for (let replies = 0; replies < 3; replies++) await busy.readLine()
  const closed = service.close(30_000)
  t.match(await idle.readLine(), /^421 4\.3\.2 /)
  busy.send('x\r\n.\r\n')
  t.match(await busy.readLine(), /^250 2\.0\.0 Queued/)
  t.match(await busy.readLine(), /^421 4\.3\.2 /)
  await closed
  t.equal(receiver.messages.length, 1)
  t.equal(service.sessionCount, 0)
})

t.test('after the grace period sessions are cut and their messages aborted', async t => {
  const { port, service, clock, receiver } = await smtpService(t)
  const busy = await SmtpClient.connect(port)
  await busy.readLine()
  await busy.ehlo()
  busy.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\n')
  for (let replies = 0; replies < 3; replies++) await busy.readLine()
  const closed = service.close(30_000)
  await clock.advance(30_000)
  await closed
  t.equal(await busy.readLine(), undefined)
  t.same(receiver.abandoned, ['a@x.example'])
})

t.test('several listeners share one limit', async t => {
  const clock = new FakeClock()
  const log = new FakeLog()
  const certificate = await openTlsCertificate({ cert: '', key: '', hostname: 'mx.example' }, clock)
  const service = openSmtpService(
    { hostname: 'mx.example', secureContext: () => certificate.secureContext(), limits: { sessions: 2 } },
    new KeepingReceiver(),
    { clock, log, tcpServer: systemTcpServer },
  )
  const plain = await service.listen({ host: '127.0.0.1', port: 0 })
  const secure = await service.listen({ host: '127.0.0.1', port: 0 }, true)
  const one = await SmtpClient.connect(plain.port)
  const two = await SmtpClient.connect(secure.port, true)
  t.match(await Promise.all([one.readLine(), two.readLine()]), [/^220 /, /^220 /])
  const three = await SmtpClient.connect(plain.port)
  t.match(await three.readLine(), /^421 4\.3\.2 /)
  await t.rejects(service.listen(plain), {
    message: /cannot listen on 127\.0\.0\.1:\d+: address already in use/,
  })
  await service.close(0)
})

t.test('a listener with implicit TLS needs a certificate', async t => {
  const { service } = await smtpService(t)
  await t.rejects(service.listen({ host: '127.0.0.1', port: 0 }, true), { message: /certificate/ })
})

t.test('the certificate is read from files and reloaded when renewed', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-tls-'))
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), hostname: 'mx.example' }
  const clock = new FakeClock()
  await t.rejects(openTlsCertificate(files, clock), { message: /cannot read .*cert\.pem/ })
  await t.rejects(openTlsCertificate({ ...files, key: '' }, clock), { message: /must be set together/ })
  copyFileSync('test/fixtures/tls/mx.example.cert.pem', files.cert)
  copyFileSync('test/fixtures/tls/mx.example.key.pem', files.key)
  const certificate = await openTlsCertificate(files, clock)
  t.equal(certificate.isSelfSigned, false)
  const before = certificate.secureContext()
  writeFileSync(files.key, 'no key')
  await t.rejects(certificate.reload(), { message: /cannot be used/ })
  t.equal(certificate.secureContext(), before, 'the former one stays')
  copyFileSync('test/fixtures/tls/mx.example.key.pem', files.key)
  await certificate.reload()
  t.not(certificate.secureContext(), before)
})

t.test('without files a self-signed certificate is generated', async t => {
  const clock = new FakeClock(Date.now())
  const certificate = await openTlsCertificate({ cert: '', key: '', hostname: 'mx.example' }, clock)
  t.equal(certificate.isSelfSigned, true)
  t.ok(certificate.expiresAt > clock.now() + 9 * 365 * 86_400_000)
  const service = openSmtpService(
    { hostname: 'mx.example', secureContext: () => certificate.secureContext() },
    new KeepingReceiver(),
    { clock, log: new FakeLog(), tcpServer: systemTcpServer },
  )
  const { port } = await service.listen({ host: '127.0.0.1', port: 0 }, true)
  const shown = await new Promise<X509Certificate | undefined>(resolve => {
    const socket: TLSSocket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate())
      socket.destroy()
    })
  })
  t.equal(shown?.checkHost('mx.example'), 'mx.example')
  t.ok(shown?.verify(shown.publicKey), 'it is self-signed')
  await service.close(0)
})
