/** What real clients and malformed ones send to the running appliance: codings, methods, broken HTTP, too much of it. */
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { ask, faultOf, readOperations, usualRequest } from '../support/api/api-document.js'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const SEND = '/api/v1/email/send'
const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const madeUp = (name: string) => (name === 'email' ? 'nobody@nowhere.example' : MADE_UP)
const letter = {
  to: 'delivered@simulator.test',
  from_email: 'shop@sender.example',
  subject: 'Hello',
  text: 'Hello',
}

/** Sends octets as they are. @returns all that came back once the server has closed */
function speak(t: Test, { addresses }: TestAppliance, ...texts: string[]): Promise<string> {
  const socket = connect(addresses.http[0]?.port ?? 0, '127.0.0.1')
  t.teardown(() => socket.destroy())
  for (const text of texts) socket.write(text)
  return new Promise((resolve, reject) => {
    let answer = ''
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
    socket.on('error', reject).on('end', () => resolve(answer))
  })
}

// proves: decisions: Email > Optional fields null is as
// answers: bodied: unsupported_media_type
t.test('a body may be gzip; any other coding or charset is a 415 on every route that takes one', async t => {
  const { baseUrl, ...appliance } = await openTestAppliance(t)
  const key = await appliance.makeKey('--sandbox')
  const body = gzipSync(JSON.stringify(letter))
  const zipped = (headers: object, octets: Uint8Array = body) =>
    ask(baseUrl, { method: 'POST', path: SEND, key, body: octets, headers: { ...headers } })
  t.match(await zipped({ 'Content-Encoding': 'gzip' }), { status: 200 })
  t.match(await zipped({ 'Content-Encoding': 'gzip' }, body.subarray(0, -9)), { status: 400, text: /gzip/ })
  t.match(await zipped({ 'Content-Encoding': 'gzip' }, Buffer.from('{}')), { status: 400, text: /gzip/ })
  const plain = { 'Content-Encoding': 'identity', 'Content-Type': 'application/json; charset="UTF-8"' }
  t.match(await zipped(plain, Buffer.from(JSON.stringify(letter))), { status: 200 })
  for (const operation of (await readOperations(baseUrl)).filter(one => one.body && one.needsKey))
    for (const [name, value] of [
      ['Content-Encoding', 'br'],
      ['Content-Encoding', 'gzip, gzip'],
      ['Content-Type', 'application/json; charset=utf-16'],
    ] as const) {
      const usual = usualRequest(operation, madeUp, key)
      const answer = await ask(baseUrl, { ...usual, headers: { ...usual.headers, [name]: value } })
      t.equal(faultOf(operation, answer), undefined, operation.name)
      t.match(answer, { status: 415, text: `"path":"${name}"` }, `${operation.name} ${value}`)
      t.match(answer.text, '"unsupported_media_type"', operation.name)
    }
})

t.test('what gzip unfolds to is bounded while it unfolds', async t => {
  const { baseUrl, ...appliance } = await openTestAppliance(t)
  const key = await appliance.makeKey()
  const bomb = gzipSync(`{"to":"${' '.repeat(60_000_000)}`)
  const headers = { 'Content-Encoding': 'gzip' }
  const answer = await ask(baseUrl, { method: 'POST', path: SEND, key, body: bomb, headers })
  t.match(answer, { status: 400, text: /body is larger than/ })
})

// proves: decisions: Email > Optional fields null is as
// answers: any: method_not_allowed
t.test(
  'a method that a path does not take is a 405 with Allow, and an unknown path is a 401 without a key',
  async t => {
    const { baseUrl, key } = await openTestAppliance(t)
    const answer = await ask(baseUrl, { method: 'PUT', path: SEND, key })
    t.match(answer, { status: 405, text: /"method_not_allowed"/ })
    t.equal(answer.headers.get('allow'), 'OPTIONS, POST')
    t.match(answer.headers.get('x-ratelimit-limit'), /^\d+$/)
    t.match(await ask(baseUrl, { method: 'OPTIONS', path: SEND }), { status: 204, text: '' })
    const fixed = await ask(baseUrl, { method: 'GET', path: `${SEND}/`, key })
    t.match(fixed, { status: 405 }, 'no message has the id "send"')
    t.equal(fixed.headers.get('allow'), 'OPTIONS, POST')
    const imports = await ask(baseUrl, { method: 'DELETE', path: '/api/v1/contacts/import', key })
    t.match(imports, { status: 405 }, 'and no contact the id "import"')
    t.match(await ask(baseUrl, { method: 'GET', path: '/api/v1/nothing' }), { status: 401 })
    t.match(await ask(baseUrl, { method: 'GET', path: '/api/v1/nothing', key }), { status: 404 })
    t.match(await ask(baseUrl, { method: 'GET', path: '/api/v1/analytics/', key }), { status: 200 })
  },
)

// answers: any: headers_too_large
t.test(
  'what is no HTTP request, and headers without end, are refused in the form of every error',
  async t => {
    const appliance = await openTestAppliance(t)
    const headers = /X-Request-Id: .+\r\n[^]*X-RateLimit-Limit: \d+\r\n[^]*Content-Type: application\/json/
    const nonsense = await speak(t, appliance, 'EHLO mail.example\r\n\r\n')
    t.match(nonsense, /^HTTP\/1\.1 400 Bad Request\r\n/)
    t.match(nonsense, headers)
    t.match(nonsense, /\r\n\r\n\{"error":\{"code":"validation_error","message":"[^"]+","path":"request"\}\}$/)
    const long = await speak(
      t,
      appliance,
      `GET /health HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    )
    t.match(long, /^HTTP\/1\.1 431 /)
    t.match(long, headers)
    t.match(long, /"code":"headers_too_large"/)
    const chunk =
      'POST /api/v1/email/send HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n'
    t.match(await speak(t, appliance, chunk), /^HTTP\/1\.1 40[01] /)
    const both = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n'
    t.match(
      await speak(t, appliance, both),
      /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 400 /,
      'after the answer before it',
    )
  },
)

t.test('a request that names no host or two, and CONNECT, are refused in the same form, in turn', async t => {
  const appliance = await openTestAppliance(t)
  const refusal =
    /HTTP\/1\.1 400 Bad Request\r\nX-Request-Id: .+\r\n[^]*X-RateLimit-Limit: \d+\r\n[^]*"path":"request"\}\}$/
  const well = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const request of [
    'GET /health HTTP/1.1\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
    'CONNECT mail.example:25 HTTP/1.1\r\nHost: mail.example:25\r\n\r\n',
  ]) {
    t.match(await speak(t, appliance, request), refusal, request)
    const both = await speak(t, appliance, well + request)
    t.match(both, /^HTTP\/1\.1 200 /, 'after the answer before it')
    t.match(both, refusal, request)
  }
  t.match(await speak(t, appliance, 'GET /health HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /, 'HTTP/1.0 has none')
  const rude = connect(appliance.addresses.http[0]?.port ?? 0, '127.0.0.1').on('error', () => undefined)
  const isGone = new Promise(resolve => rude.once('close', resolve))
  rude.write('CONNECT mail.example:25 HTTP/1.1\r\nHost: x\r\n\r\n', () => rude.resetAndDestroy())
  await isGone
  t.match(
    await speak(t, appliance, 'GET /health HTTP/1.0\r\n\r\n'),
    /^HTTP\/1\.1 200 /,
    'nobody else notices',
  )
})

// answers: bodied: request_timeout
t.test('a body that does not arrive in time is a 408', async t => {
  const appliance = await openTestAppliance(t)
  const { key, clock } = appliance
  const head = `POST ${SEND} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: 100\r\n\r\n{`
  let answer: string | undefined
  void speak(t, appliance, head).then(text => (answer = text))
  // A minute for the body, and one for what is thrown away of it.
  await until('the answer and the end', async () => {
    await clock.advance(10_000)
    return answer
  })
  t.match(answer, /^HTTP\/1\.1 408 [^]*"code":"request_timeout"/)
})

// proves: Postroad > a body has a bounded number of levels and values
t.test('a body of too many values or levels is a 400, with an Idempotency-Key and without', async t => {
  const { baseUrl, ...appliance } = await openTestAppliance(t)
  const key = await appliance.makeKey('--sandbox')
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const send = (template_data: string, headers = {}) => {
    const body = `${JSON.stringify(letter).slice(0, -1)},"template_data":${template_data}}`
    return ask(baseUrl, { method: 'POST', path: SEND, key, body, headers })
  }
  for (const headers of [{}, { 'Idempotency-Key': 'deep' }]) {
    t.match(await send(`{"x":${deep(98)}}`, headers), { status: 200 })
    t.match(await send(`{"x":${deep(99)}}`, headers), { status: 400, text: /deeper than 100 levels/ })
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 33_000 }, (_, at) => [`k${at}`, at])))
    t.match(await send(many, headers), { status: 400, text: /more than 32768 values/ })
  }
  const objects = `{"to":[${'{},'.repeat(1_000_000)}{}],"subject":"x","text":"x"}`
  const refused = await ask(baseUrl, { method: 'POST', path: SEND, key, body: objects })
  t.match(refused, { status: 400, text: /"path":"body"/ })
  const messages = Array.from({ length: 1_000 }, () => ({
    ...letter,
    tags: Array.from({ length: 20 }, () => 'a'),
  }))
  const batch = await appliance.post('/api/v1/email/batch', { messages }, { key })
  t.equal(batch.status, 202)
})
