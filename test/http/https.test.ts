/** HTTPS: which versions are spoken, how the certificate is exchanged, what clients may hold, and where port 80 leads. */
import { once } from 'node:events'
import { request as httpsRequest, Agent } from 'node:https'
import { connect } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { httpRedirect } from '../../src/http/redirect.js'
import { openHttpListeners } from '../../src/appliance/listeners/http-listeners.js'
import { listenHttp, listenHttps } from '../../src/world/net/listen.js'
import type { HttpHandler } from '../../src/world/net/http-connections.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemClock } from '../../src/world/time/clock.js'
import { makeSelfSigned, type PemPair } from '../../src/world/tls/self-signed-certificate.js'
import { openTlsCertificate } from '../../src/world/tls/tls-certificate.js'
import { until } from '../support/until.js'

const NAME = 'mail.example.com'
const WIDE = { connections: 100, connectionsPerAddress: 100 }

const saying = (text: string): HttpHandler => ({
  handle: async (_, response) => void response.end(text),
  answerFault: fault => ({ status: 503, headers: {}, body: fault }),
})

async function serve(t: Test, limits = WIDE, handler = saying('hello')) {
  const shown: { pair: PemPair } = { pair: await makeSelfSigned(NAME, Date.now()) }
  const address = { host: '127.0.0.1', port: 0 }
  const listener = await listenHttps(address, handler, limits, systemClock, () => shown.pair)
  t.teardown(() => listener.close(0))
  return { shown, listener, port: listener.address.port }
}

function get(port: number, agent?: Agent): Promise<{ body: string; socket: TLSSocket; headers: object }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, servername: NAME, rejectUnauthorized: false, agent }
    httpsRequest(options, response => {
      const { socket } = response
      if (!(socket instanceof TLSSocket)) {
        reject(new Error('no TLS'))
        return
      }
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ body, socket, headers: response.headers }))
    })
      .on('error', reject)
      .end()
  })
}

t.test('TLS 1.2 and 1.3 are spoken, older ones are not', async t => {
  const { port } = await serve(t)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = connectTls({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      minVersion: version,
      maxVersion: version,
    })
    await once(socket, 'secureConnect')
    t.equal(socket.getProtocol(), version)
    socket.destroy()
  }
  const old = connectTls({
    port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  })
  const [error] = (await once(old, 'error')) as [Error]
  t.match(error.message, /protocol|version|handshake/i)
})

t.test('another certificate counts from the next connection on, and no connection is lost by it', async t => {
  const { port, shown } = await serve(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const first = await get(port, agent)
  const before = first.socket.getPeerCertificate().fingerprint256
  shown.pair = await makeSelfSigned(NAME, Date.now())
  const same = await get(port, agent)
  t.equal(same.socket, first.socket)
  t.equal(same.body, 'hello')
  const other = await get(port)
  t.not(other.socket.getPeerCertificate().fingerprint256, before)
})

t.test('connections beyond the limit are refused over TLS, and handshakes count as connections', async t => {
  const { port } = await serve(t, { connections: 100, connectionsPerAddress: 2 })
  // Two that never say a word.
  const silent = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  await Promise.all(silent.map(socket => once(socket, 'connect')))
  await t.rejects(get(port), 'there is nothing to say before the handshake')
  for (const socket of silent) socket.destroy()
  await until('room again', async () => (await get(port).catch(() => undefined))?.body === 'hello')
})

t.test('what is no TLS is closed, and what is broken off leaves nothing behind', async t => {
  const { port, listener } = await serve(t)
  const plain = connect(port, '127.0.0.1')
  plain.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await Promise.race([once(plain, 'close'), once(plain.resume(), 'end')])
  const broken = connect(port, '127.0.0.1')
  broken.write(Buffer.from('1603010005', 'hex'))
  await once(broken, 'connect')
  t.equal((await get(port)).body, 'hello')
  await t.resolves(listener.close(0), 'it closes without waiting for the handshake')
})

t.test('browsers get HSTS, unless the certificate is self-signed', async t => {
  const pair = await makeSelfSigned(NAME, Date.now())
  const certificate = await openTlsCertificate({ cert: '', key: '', hostname: NAME }, systemClock)
  const pages = { ...saying('pages'), serves: () => false }
  const here = [{ host: '127.0.0.1', port: 0 }]
  const http = {
    listen: here,
    listenTls: here,
    publicListen: [],
    publicListenTls: here,
    redirectListen: here,
    proxyProtocolFrom: [],
    ...WIDE,
  }
  const listeners = await openHttpListeners(
    { current: { http, publicUrl: `https://${NAME}` } as never },
    saying('api'),
    pages,
    { certificate, challenges: undefined },
    { clock: systemClock, log: new FakeLog() },
  )
  t.teardown(() => listeners.close(0))
  const { addresses } = listeners
  const [api, open] = [addresses.https[0]?.port ?? 0, addresses.publicTls[0]?.port ?? 0]
  t.notHas((await get(open)).headers, { 'strict-transport-security': /./ })
  certificate.use(pair, 'a CA')
  t.match(await get(open), { body: 'pages', headers: { 'strict-transport-security': 'max-age=31536000' } })
  t.match(await get(api), { body: 'api' })
  const plain = await fetch(`http://127.0.0.1:${addresses.http[0]?.port ?? 0}/`)
  t.equal(plain.headers.get('strict-transport-security'), null)
})

t.test('0.0.0.0 and [::] of one port work together, also in different lists', async t => {
  const probe = await listenHttp({ host: '0.0.0.0', port: 0 }, saying(''), WIDE, systemClock)
  const { port } = probe.address
  await probe.close(0)
  const certificate = await openTlsCertificate({ cert: '', key: '', hostname: NAME }, systemClock)
  const http = {
    listen: [],
    listenTls: [],
    publicListen: [{ host: '0.0.0.0', port }],
    publicListenTls: [],
    redirectListen: [{ host: '::', port }],
    proxyProtocolFrom: [],
    ...WIDE,
  }
  const listeners = await openHttpListeners(
    { current: { http, publicUrl: `https://${NAME}` } as never },
    saying('api'),
    { ...saying('pages'), serves: () => false },
    { certificate, challenges: undefined },
    { clock: systemClock, log: new FakeLog() },
  )
  t.teardown(() => listeners.close(0))
  t.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'pages')
  t.equal((await fetch(`http://[::1]:${port}/`, { redirect: 'manual' })).status, 308)
})

t.test(
  'port 80 leads those who read to HTTPS, to our own host alone, and takes nothing in clear',
  async t => {
    const handler = httpRedirect('https://links.example.com', saying(''))
    const listener = await listenHttp({ host: '127.0.0.1', port: 0 }, handler, WIDE, systemClock)
    t.teardown(() => listener.close(0))
    const base = `http://127.0.0.1:${listener.address.port}`
    const ask = (path: string, init: RequestInit = {}) => fetch(base + path, { redirect: 'manual', ...init })
    const led = await ask('/u/abc?x=1')
    t.equal(led.status, 308)
    t.equal(led.headers.get('location'), 'https://links.example.com/u/abc?x=1')
    for (const path of ['//evil.example/x', '/\\evil.example/x'])
      t.match((await ask(path)).headers.get('location'), /^https:\/\/links\.example\.com\/evil\.example\/x$/)
    t.equal((await ask('/u/abc', { method: 'POST', body: 'x' })).status, 403)
    t.equal((await ask('/api/v1/email', { headers: { Authorization: 'Bearer key' } })).status, 403)
  },
)
