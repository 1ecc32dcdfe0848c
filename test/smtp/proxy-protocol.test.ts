/** SMTP behind a load balancer that speaks the PROXY protocol. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import t, { type Test } from 'tap'
import { ProxyProtocol } from '../../src/world/net/proxy-protocol.js'
import { openSmtpService } from '../../src/smtp/service.js'
import type { SmtpServiceOptions } from '../../src/smtp/options.js'
import type { SessionFacts } from '../../src/smtp/receiver.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemTcpServer } from '../../src/world/net/listen-tcp.js'
import { binaryHeader, headerOf, LOCAL } from '../support/proxy-headers.js'
import { readByServer } from '../support/read-by-server.js'
import { certificate } from '../support/smtp/scripted-server.js'
import { KeepingReceiver, SmtpClient } from '../support/smtp/smtp-service.js'
import { until } from '../support/until.js'

const PROXY = '127.0.7.1'

class NotingReceiver extends KeepingReceiver {
  readonly seen: SessionFacts[] = []
  connect(facts: SessionFacts): undefined {
    this.seen.push({ ...facts })
  }
}

async function openService(t: Test, options: Partial<SmtpServiceOptions> & { isImplicitTls?: boolean } = {}) {
  const { isImplicitTls = false, ...rest } = options
  const clock = new FakeClock()
  const log = new FakeLog()
  const receiver = new NotingReceiver()
  const context = createSecureContext(certificate)
  const service = openSmtpService(
    { hostname: 'mx.example', secureContext: () => context, ...rest },
    receiver,
    {
      clock,
      log,
      tcpServer: systemTcpServer,
      proxyProtocol: new ProxyProtocol([`${PROXY}/32`], 'inbound', { clock, log }),
    },
  )
  const { port } = await service.listen({ host: '127.0.0.1', port: 0 }, isImplicitTls)
  let closed: Promise<void> | undefined
  const close = async () => {
    closed ??= service.close(0)
    await clock.advance(1)
    await closed
  }
  t.teardown(close)
  /** Sends the pieces in packets of their own. */
  const dial = async (from: string, ...pieces: (Buffer | string)[]): Promise<SmtpClient> => {
    const client = await SmtpClient.connect(port, false, from)
    client.socket.setNoDelay(true)
    for (const piece of pieces) {
      client.socket.write(piece)
      await readByServer(client.socket)
    }
    return client
  }
  return { service, port, clock, log, receiver, dial, close }
}

t.test('the client that a header names is the one that a session sees and logs', async t => {
  const { dial, receiver, log } = await openService(t)
  const one = await dial(PROXY, headerOf('192.0.2.7', 40_000))
  t.match(await one.readLine(), /^220 /)
  const other = await dial(PROXY, headerOf('2001:db8:0:0:0:0:0:7', 40_001, Buffer.from('040000', 'hex')))
  t.match(await other.readLine(), /^220 /)
  const old = await dial(PROXY, 'PROXY TCP4 192.0.2.8 127.0.0.1 40002 25\r\n')
  t.match(await old.readLine(), /^220 /)
  t.match(receiver.seen, [
    { peerAddress: '192.0.2.7', peerPort: 40_000 },
    { peerAddress: '2001:db8::7', peerPort: 40_001 },
    { peerAddress: '192.0.2.8', peerPort: 40_002 },
  ])
  for (const client of [one, other, old]) client.send('QUIT\r\n')
  await until('the sessions to end', () => log.lines.filter(ofSession).length === 3)
  t.same(
    log.lines
      .filter(ofSession)
      .map(({ fields }) => fields['peer'])
      .toSorted(),
    ['192.0.2.7', '192.0.2.8', '2001:db8::7'],
  )
})

const ofSession = ({ event }: { event: string }) => event === 'smtp session ended'

t.test('a header may arrive in pieces, and a command with its last one', async t => {
  const { dial, receiver } = await openService(t)
  const header = headerOf('192.0.2.7', 40_000)
  for (const at of [1, 12, 13, 15, 16, 27]) {
    const rest = Buffer.concat([header.subarray(at), Buffer.from('EHLO client.example\r\n')])
    const client = await dial(PROXY, header.subarray(0, at), rest)
    t.match(await client.readReply(), [/^220 /])
    t.match((await client.readReply()).at(-1), /^250 /)
    client.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nBDAT 3 LAST\r\n...QUIT\r\n')
    for (const code of [/^250 /, /^250 /, /^250 /, /^221 /]) t.match(await client.readReply(), [code])
  }
  t.equal(receiver.messages.length, 6)
  t.ok(receiver.seen.every(({ peerAddress }) => peerAddress === '192.0.2.7'))
})

t.test('STARTTLS and implicit TLS begin after the header', async t => {
  const explicit = await openService(t)
  const client = await explicit.dial(PROXY, headerOf('192.0.2.7', 40_000))
  await client.readLine()
  await client.ehlo()
  client.send('STARTTLS\r\n')
  t.match(await client.readLine(), /^220 /)
  await client.startTls()
  await client.ehlo()
  t.match(explicit.receiver.seen, [{ peerAddress: '192.0.2.7' }])

  const implicit = await openService(t, { isImplicitTls: true })
  const secure = await implicit.dial(PROXY, headerOf('192.0.2.9', 40_000))
  await secure.startTls()
  t.match(await secure.readLine(), /^220 /)
  t.match(implicit.receiver.seen, [{ peerAddress: '192.0.2.9', tls: { version: 'TLSv1.3' } }])
})

t.test('a health check keeps the address of the load balancer', async t => {
  const { dial, receiver } = await openService(t)
  const checks = [LOCAL, binaryHeader({ kind: 0 }), 'PROXY UNKNOWN\r\n']
  for (const check of checks) t.match(await (await dial(PROXY, check)).readLine(), /^220 /)
  t.same(
    receiver.seen.map(({ peerAddress }) => peerAddress),
    checks.map(() => PROXY),
  )
})

t.test('a header from anybody else is no header', async t => {
  const { dial, receiver, service } = await openService(t)
  const forger = await dial('127.0.0.5', 'PROXY TCP4 192.0.2.7 127.0.0.1 40000 25\r\n')
  t.match(await forger.readLine(), /^220 /)
  t.match(await forger.readLine(), /^500 /)
  const binary = await dial('127.0.0.5', headerOf('192.0.2.7', 40_000), '\r\n')
  t.match(await binary.readLine(), /^220 /)
  t.match(await binary.readLine(), /^500 /)
  t.same(
    receiver.seen.map(({ peerAddress }) => peerAddress),
    ['127.0.0.5', '127.0.0.5'],
  )
  t.equal(service.sessionCount, 2)
})

/** Resolves once the server has closed, with what it said. */
async function said(client: SmtpClient): Promise<string> {
  while ((await client.readLine()) !== undefined);
  return client.unread
}

t.test(
  'without a valid header a load balancer is cut off unanswered, and one line a minute says so',
  async t => {
    const { dial, service, clock, log } = await openService(t)
    for (const bad of ['EHLO client.example\r\n', binaryHeader({ command: 0x2f }), 'PROXY TCP4 x\r\n'])
      t.equal(await said(await dial(PROXY, bad)), '')
    const lines = () => log.lines.filter(({ event }) => event === 'proxy header rejected')
    t.match(lines(), [
      { level: 'warn', fields: { listener: 'inbound', proxy: PROXY, reason: 'missing', count: 1 } },
    ])
    await clock.advance(60_000)
    t.equal(await said(await dial(PROXY, binaryHeader({ length: 60_000 }))), '')
    t.match(lines().slice(1), [{ fields: { reason: 'too-long', count: 3 } }])
    t.equal(service.counts.opened, 0)
  },
)

t.test('a header that is not complete within five seconds ends the connection', async t => {
  const { dial, clock, log, service } = await openService(t)
  const silent = await dial(PROXY)
  const slow = await dial(PROXY, headerOf('192.0.2.7', 40_000).subarray(0, 20))
  const good = await dial(PROXY, headerOf('192.0.2.7', 40_000))
  t.match(await good.readLine(), /^220 /)
  await clock.advance(5_000)
  t.equal(await said(silent), '')
  t.equal(await said(slow), '')
  t.match(
    log.lines.filter(({ event }) => event === 'proxy header rejected'),
    [{ fields: { reason: 'too-slow' } }],
  )
  good.send('NOOP\r\n')
  t.match(await good.readLine(), /^250 /)
  t.equal(service.counts.opened, 1)
})

t.test('a thousand connections may wait for their header, and those with one are served', async t => {
  const { log, dial, port, receiver } = await openService(t)
  const rejected = () => log.lines.filter(({ event }) => event === 'proxy header rejected')
  const silent = await Promise.all(
    Array.from({ length: 1_000 }, () => SmtpClient.connect(port, false, PROXY)),
  )
  const late = await dial(PROXY)
  t.equal(await said(late), '')
  t.match(rejected(), [{ fields: { reason: 'too-many', count: 1 } }])
  const [first] = silent
  first?.socket.write(headerOf('192.0.2.7', 40_000))
  t.match(await first?.readLine(), /^220 /)
  t.match(await (await dial('127.0.0.5')).readLine(), /^220 /, 'others are not affected')
  t.match(receiver.seen, [{ peerAddress: '192.0.2.7' }, { peerAddress: '127.0.0.5' }])
  for (const client of silent) client.cut()
})

t.test('who only looks whether the port is open is not logged', async t => {
  const { dial, log, port } = await openService(t)
  const closed: Promise<unknown>[] = []
  for (let n = 0; n < 3; n += 1) {
    const socket: Socket = connect({ port, host: '127.0.0.1', localAddress: PROXY })
    await once(socket, 'connect')
    socket.end()
    closed.push(once(socket.resume(), 'close'))
  }
  await Promise.all(closed)
  const client = await dial(PROXY, LOCAL)
  await client.readLine()
  t.same(log.lines, [])
})

t.test('limits count the clients, not the load balancer', async t => {
  const { dial } = await openService(t, { limits: { sessions: 100, sessionsPerAddress: 2 } })
  for (const last of [1, 2, 3, 4])
    t.match(await (await dial(PROXY, headerOf(`192.0.2.${last}`, 40_000))).readLine(), /^220 /)
  const second = await dial(PROXY, headerOf('192.0.2.1', 40_001))
  t.match(await second.readLine(), /^220 /)
  const third = await dial(PROXY, headerOf('192.0.2.1', 40_002))
  t.match(await third.readLine(), /^421 4\.7\.0 /)
})

t.test(
  'a client that talks before the greeting is refused, also when its words come with the header',
  async t => {
    const { dial, clock, receiver } = await openService(t, { greetingDelayMs: 1_000 })
    const early = await dial(
      PROXY,
      Buffer.concat([headerOf('192.0.2.7', 40_000), Buffer.from('EHLO client.example\r\n')]),
    )
    t.match(await early.readLine(), /^554 /)
    const polite = await dial(PROXY, headerOf('192.0.2.8', 40_000))
    await clock.advance(1_000)
    t.match(await polite.readLine(), /^220 /)
    t.match(receiver.seen, [{ peerAddress: '192.0.2.8' }])
  },
)

t.test('a stop does not wait for headers', async t => {
  const { dial, close } = await openService(t)
  const silent = await dial(PROXY)
  await close()
  t.equal(await said(silent), '')
})
