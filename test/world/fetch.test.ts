/** HTTP requests against a real server on loopback, and the scripted stand-in. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeHttpClient } from '../../src/world/net/fake-fetch.js'
import { egressPolicyFor } from '../../src/world/net/egress-policy.js'
import { openHttpClient, type HttpRequest } from '../../src/world/net/fetch.js'
import { httpCertificate } from '../support/api/http-certificate.js'

const client = openHttpClient(systemClock)

/** Listens on loopback until the test ends. */
async function serve(t: Test, server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function serveHttp(t: Test, listener: RequestListener): Promise<number> {
  return serve(t, createServer(listener))
}

function get(url: string, more: Partial<HttpRequest> = {}): HttpRequest {
  return { namedBy: 'operator', method: 'GET', url, timeoutMs: 10_000, maxBytes: 1_000, ...more }
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of message) text += String(chunk)
  return text
}

t.test('method, path, headers and body arrive, and the answer comes back', async t => {
  const port = await serveHttp(t, (request, response) => {
    void textOf(request).then(body => {
      response.writeHead(201, { 'X-Seen': 'yes', 'Set-Cookie': ['a=1', 'b=2'] })
      response.end(
        `${request.method} ${request.url} ${String(request.headers['x-token'])} ${request.headers.host} ${body}`,
      )
    })
  })
  const url = `http://127.0.0.1:${port}/hook?x=1`
  const response = await client.request(
    get(url, { method: 'POST', headers: { 'X-Token': 'abc', Host: 'forged.example' }, body: 'hällo' }),
  )
  t.equal(response.body.toString(), `POST /hook?x=1 abc 127.0.0.1:${port} hällo`)
  t.match(response, {
    status: 201,
    headers: { 'x-seen': 'yes', 'set-cookie': 'a=1, b=2' },
    isTruncated: false,
  })
})

t.test('a redirect is an answer and is not followed', async t => {
  const paths: string[] = []
  const port = await serveHttp(t, (request, response) => {
    paths.push(request.url ?? '')
    response.writeHead(302, { Location: '/elsewhere' }).end()
  })
  const response = await client.request(get(`http://127.0.0.1:${port}/`))
  t.match(response, { status: 302, headers: { location: '/elsewhere' } })
  t.same(paths, ['/'])
})

t.test('an endless body is cut at maxBytes', async t => {
  let noteDrop = () => {}
  const dropped = new Promise<void>(resolve => (noteDrop = resolve))
  const port = await serveHttp(t, (_request, response) => {
    const pour = () => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384, 'x')));
    }
    response.on('drain', pour).on('close', noteDrop)
    pour()
  })
  const response = await client.request(get(`http://127.0.0.1:${port}/`, { maxBytes: 20_000 }))
  t.equal(response.body.toString(), 'x'.repeat(20_000))
  t.equal(response.isTruncated, true)
  await t.resolves(dropped, 'the connection was dropped')
})

t.test('a body of exactly maxBytes is complete', async t => {
  const port = await serveHttp(t, (_request, response) => response.end('x'.repeat(1_000)))
  const { body, isTruncated } = await client.request(get(`http://127.0.0.1:${port}/`))
  t.equal(body.length, 1_000)
  t.equal(isTruncated, false)
})

t.test('a server that never answers, or never ends its answer, is given up at the timeout', async t => {
  for (const begin of [false, true]) {
    const clock = new FakeClock()
    const port = await serveHttp(t, (_request, response) => {
      if (begin) response.write('so')
      // Long enough for the beginning to arrive; were it too short, the timeout would only come at an earlier stage.
      systemClock.after(50, () => void clock.advance(10_000))
    })
    await t.rejects(openHttpClient(clock).request(get(`http://127.0.0.1:${port}/`)), { code: 'ETIMEDOUT' })
    t.equal(clock.waiting, 0)
  }
})

t.test('an answer cut off in the middle is a failure, not a short answer', async t => {
  const port = await serveHttp(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': '100' })
    response.write('half', () => response.destroy())
  })
  await t.rejects(client.request(get(`http://127.0.0.1:${port}/`)), { code: 'ECONNRESET' })
})

t.test('nobody listening, a broken URL and another scheme are rejections', async t => {
  const server = createServer()
  const port = await serve(t, server)
  await new Promise(resolve => server.close(resolve))
  await t.rejects(client.request(get(`http://127.0.0.1:${port}/`)), { code: 'ECONNREFUSED' })
  await t.rejects(client.request(get('not a url')), TypeError)
  await t.rejects(client.request(get('ftp://127.0.0.1/')), { message: 'ftp: is neither http: nor https:' })
})

t.test('the pinned address is dialled while the host stays the URL’s', async t => {
  const port = await serveHttp(t, (request, response) => response.end(request.headers.host))
  const response = await client.request(get(`http://hooks.example.test:${port}/`, { address: '127.0.0.1' }))
  t.equal(response.body.toString(), `hooks.example.test:${port}`)
})

t.test('the TLS certificate must match the URL’s host, whatever address is dialled', async t => {
  const port = await serve(
    t,
    createTlsServer(httpCertificate, (_request, response) => response.end('secret')),
  )
  const trusting = openHttpClient(systemClock, { authorities: httpCertificate.cert })
  const pinned = { address: '127.0.0.1' }
  const response = await trusting.request(get(`https://hooks.example.test:${port}/`, pinned))
  t.equal(response.body.toString(), 'secret')
  await t.rejects(trusting.request(get(`https://other.example.test:${port}/`, pinned)), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  await t.rejects(trusting.request(get(`https://127.0.0.1:${port}/`)), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  await t.rejects(client.request(get(`https://hooks.example.test:${port}/`, pinned)), {
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
})

t.test('the stand-in answers in order, remembers requests and refuses what it has no answer for', async t => {
  const fake = new FakeHttpClient()
    .answer({ status: 204 })
    .answer(Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' }))
  t.match(await fake.request(get('https://a.example/')), { status: 204, headers: {}, isTruncated: false })
  await t.rejects(fake.request(get('https://b.example/')), { code: 'EHOSTUNREACH' })
  await t.rejects(fake.request(get('https://c.example/')), {
    message: 'no answer scripted for GET https://c.example/',
  })
  t.same(
    fake.requests.map(({ url }) => url),
    ['https://a.example/', 'https://b.example/', 'https://c.example/'],
  )
})

t.test('URLs of clients are called on the public Internet only, by address and by name', async t => {
  const port = await serveHttp(t, (_request, response) => response.end('secret'))
  const asStranger = (url: string, more: Partial<HttpRequest> = {}): HttpRequest => {
    const { namedBy: _, ...request } = get(url, more)
    return request
  }
  for (const request of [
    asStranger(`http://127.0.0.1:${port}/`),
    asStranger(`http://2130706433:${port}/`),
    asStranger(`http://[::ffff:127.0.0.1]:${port}/`),
    asStranger(`http://localhost:${port}/`),
    asStranger(`http://hooks.example.test:${port}/`, { address: '169.254.169.254' }),
  ])
    await t.rejects(client.request(request), { code: 'EADDRNOTPUBLIC' }, request.url)
  const trusting = openHttpClient(systemClock, { egress: egressPolicyFor({ allowPrivate: true }) })
  t.equal((await trusting.request(asStranger(`http://localhost:${port}/`))).body.toString(), 'secret')
  t.equal((await client.request(get(`http://localhost:${port}/`))).body.toString(), 'secret')
})
