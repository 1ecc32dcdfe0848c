/** HTTP and HTTPS behind a load balancer that speaks the PROXY protocol. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { clientAddress } from '../../src/http/client-address.js'
import { FakeLog } from '../../src/world/fake-log.js'
import type { HttpHandler, HttpLimits } from '../../src/world/net/http-connections.js'
import { NetworkList } from '../../src/world/net/ip-address.js'
import { listenHttp, listenHttps } from '../../src/world/net/listen.js'
import { ProxyProtocol } from '../../src/world/net/proxy-protocol.js'
import { systemClock } from '../../src/world/time/clock.js'
import { makeSelfSigned } from '../../src/world/tls/self-signed-certificate.js'
import { binaryHeader, headerOf, LOCAL } from '../support/proxy-headers.js'
import { readByServer } from '../support/read-by-server.js'
import { until } from '../support/until.js'

const PROXY = '127.0.7.1'
const WIDE = { connections: 1_000, connectionsPerAddress: 1_000 }
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const GET_LAST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** Answers each request with the address of its client, and what its body says. */
const echo: HttpHandler = {
  async handle(request, response) {
    let body = ''
    for await (const piece of request) body += String(piece)
    response.end(`<${clientAddress(request, new NetworkList([]))} ${request.socket.remotePort}${body}>`)
  },
  answerFault: (fault, address) => ({ status: 503, headers: {}, body: `<${fault} ${address}>` }),
}

async function serve(t: Test, options: { isSecure?: boolean; limits?: HttpLimits } = {}) {
  const { isSecure = false, limits = WIDE } = options
  const log = new FakeLog()
  const proxyProtocol = new ProxyProtocol([`${PROXY}/32`], 'http', { clock: systemClock, log })
  const address = { host: '::', port: 0 }
  const pair = await makeSelfSigned('mail.example.com', Date.now())
  const listener = isSecure
    ? await listenHttps(address, echo, limits, systemClock, () => pair, proxyProtocol)
    : await listenHttp(address, echo, limits, systemClock, proxyProtocol)
  t.teardown(() => listener.close(0))
  const dial = (from: string): Socket => {
    const socket = connect({ port: listener.address.port, host: '127.0.0.1', localAddress: from })
    socket.setNoDelay(true).on('error', () => undefined)
    t.teardown(() => socket.destroy())
    return socket
  }
  return { listener, log, dial }
}

/** What is said in answers until the server closes. */
function answered(socket: Socket): Promise<string[]> {
  let text = ''
  socket.setEncoding('utf8').on('data', (more: string) => (text += more))
  return new Promise(resolve => {
    const finish = () => resolve(text.match(/<[^>]*>/g) ?? [])
    if (socket.closed) finish()
    else socket.once('close', finish)
  })
}

async function send(socket: Socket, ...pieces: (Buffer | string)[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece)
    await readByServer(socket)
  }
}

t.test('requests come from the client that the header names', async t => {
  const { dial } = await serve(t)
  const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n body'
  for (const [header, name] of [
    [headerOf('192.0.2.7', 40_000), '192.0.2.7 40000'],
    [headerOf('2001:db8:0:0:0:0:0:7', 1), '2001:db8::7 1'],
    [Buffer.from('PROXY TCP4 192.0.2.8 192.0.2.1 2 80\r\n'), '192.0.2.8 2'],
  ] as const) {
    const together = dial(PROXY)
    await send(together, Buffer.concat([header, Buffer.from(GET + post + GET_LAST)]))
    t.same(await answered(together), [`<${name}>`, `<${name} body>`, `<${name}>`])
    const apart = dial(PROXY)
    const rest = Buffer.concat([header.subarray(14), Buffer.from(GET.slice(0, 9))])
    void send(apart, header.subarray(0, 14), rest, GET.slice(9) + post.slice(0, 60), post.slice(60), GET_LAST)
    t.same(await answered(apart), [`<${name}>`, `<${name} body>`, `<${name}>`])
  }
})

t.test('over TLS the header comes before the handshake', async t => {
  const { dial } = await serve(t, { isSecure: true })
  for (const name of ['192.0.2.7', '2001:db8:0:0:0:0:0:7']) {
    const socket = dial(PROXY)
    await send(socket, headerOf(name, 40_000).subarray(0, 20), headerOf(name, 40_000).subarray(20))
    const secured = connectTls({ socket, rejectUnauthorized: false })
    secured.write(GET + GET_LAST)
    const address = name.replace('0:0:0:0:0', '').replace(':::', '::')
    t.same(await answered(secured), [`<${address} 40000>`, `<${address} 40000>`])
  }
  const direct = connectTls({ socket: dial('127.0.0.5'), rejectUnauthorized: false })
  direct.write(GET_LAST)
  t.match((await answered(direct))[0], /^<127\.0\.0\.5 /)
  const check = dial(PROXY)
  await send(check, LOCAL)
  const checked = connectTls({ socket: check, rejectUnauthorized: false })
  checked.write(GET_LAST)
  t.match((await answered(checked))[0], new RegExp(`^<${PROXY} `), 'a health check')
})

t.test('anybody else who sends a header is answered 400, and without one as himself', async t => {
  const { dial, log } = await serve(t)
  for (const header of [headerOf('192.0.2.7', 1), 'PROXY TCP4 192.0.2.8 192.0.2.1 2 80\r\n']) {
    const forger = dial('127.0.0.5')
    await send(forger, header, GET_LAST)
    t.same(await answered(forger), ['<malformed 127.0.0.5>'])
  }
  const direct = dial('127.0.0.5')
  await send(direct, GET_LAST)
  t.match((await answered(direct))[0], /^<127\.0\.0\.5 /)
  t.same(log.lines, [])
})

t.test('without a valid header a load balancer is cut off unanswered', async t => {
  const { dial, log, listener } = await serve(t)
  for (const bad of [GET, binaryHeader({ kind: 0xf1 }), '\x16\x03\x01']) {
    const socket = dial(PROXY)
    await send(socket, bad)
    t.same(await answered(socket), [])
  }
  t.equal(listener.connections, 0)
  t.match(log.lines, [{ event: 'proxy header rejected', fields: { listener: 'http', reason: 'missing' } }])
  t.equal(log.lines.length, 1)
})

t.test('limits count the clients, also while they shake hands', async t => {
  for (const isSecure of [false, true]) {
    const { dial, listener } = await serve(t, {
      isSecure,
      limits: { connections: 100, connectionsPerAddress: 2 },
    })
    for (const last of [1, 2, 3]) await send(dial(PROXY), headerOf(`192.0.2.${last}`, 1))
    await send(dial(PROXY), headerOf('192.0.2.1', 2))
    if (!isSecure) await until('four', () => listener.connections === 4)
    const refused = dial(PROXY)
    await send(refused, headerOf('192.0.2.1', 3))
    t.same(await answered(refused), isSecure ? [] : ['<too-many-connections 192.0.2.1>'])
  }
})

t.test('a stop does not wait for headers', async t => {
  const { dial, listener } = await serve(t)
  const silent = dial(PROXY)
  await send(silent, headerOf('192.0.2.7', 1).subarray(0, 5))
  await listener.close(60_000)
  t.same(await answered(silent), [])
})
