/** How long the server waits for a client that reads none of its replies. */
import { Duplex } from 'node:stream'
import t from 'tap'
import { openSmtpService } from '../../src/smtp/service.js'
import type { Socket } from '../../src/world/net/dial.js'
import { systemTcpServer } from '../../src/world/net/listen-tcp.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { KeepingReceiver } from '../support/smtp/smtp-service.js'

/** The server's end of a connection; what is written to it leaves as far as the client reads. */
class ClientLine extends Duplex {
  readonly remoteAddress = '192.0.2.1'
  readonly localAddress = '192.0.2.25'
  said = ''
  private readonly reads: () => boolean

  constructor(reads: () => boolean) {
    super({ writableHighWaterMark: 1 })
    this.reads = reads
  }

  override _read(): void {
    // What the client says is pushed by the test.
  }

  override _write(octets: Buffer, _encoding: string, taken: () => void): void {
    if (!this.reads()) return
    this.said += octets.toString('latin1')
    taken()
  }
}

async function connected(reads: () => boolean) {
  const clock = new FakeClock()
  let connect: (socket: Socket) => void = () => {}
  const service = openSmtpService({ hostname: 'mx.example' }, new KeepingReceiver(), {
    clock,
    log: new FakeLog(),
    tcpServer: {
      ...systemTcpServer,
      listen: async (address, onConnection) => {
        connect = onConnection
        return { address, close: async () => {} }
      },
    },
  })
  await service.listen({ host: '192.0.2.25', port: 25 })
  const line = new ClientLine(reads)
  connect(line as unknown as Socket)
  await clock.advance(0)
  line.push('EHLO client.example\r\n')
  await clock.advance(0)
  return { clock, service, line }
}

t.test('a client that reads no replies is disconnected after a minute', async t => {
  let readsOn = true
  const { clock, service, line } = await connected(() => readsOn)
  t.match(line.said, /^220 mx\.example .*\r\n250-/)
  readsOn = false
  line.push('NOOP\r\n')
  await clock.advance(55_000)
  t.equal(service.sessionCount, 1)
  await clock.advance(65_000)
  t.equal(service.sessionCount, 0)
  t.ok(line.destroyed)
})

t.test('a client that reads replies but stays silent has five minutes', async t => {
  const { clock, service, line } = await connected(() => true)
  await clock.advance(290_000)
  t.equal(service.sessionCount, 1)
  await clock.advance(70_000)
  t.match(line.said, /421 4\.4\.2 Timeout\r\n$/)
})
