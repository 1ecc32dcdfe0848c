/** What one client may hold of the HTTP server: requests sent ahead, answers not fetched, connections, memory for bodies. */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import Type from 'typebox'
import { AppError } from '../../src/core/errors.js'
import { openRoute, route, uploadRoute } from '../../src/http/route.js'
import { serveRoutes } from '../support/api/api.js'
import { testRoutes } from '../support/api/test-routes.js'
import { readByServer } from '../support/read-by-server.js'
import { until } from '../support/until.js'

const NOTES = '/api/v1/notes'

function dial(t: Test, port: number, localAddress = '127.0.0.1'): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  return socket
}

/** A route that answers with so many octets, and counts how many requests were begun and are under way. */
function pages(octets: number) {
  const seen = { begun: 0, most: 0, now: 0 }
  const text = 'x'.repeat(octets)
  const page = openRoute({
    method: 'GET',
    path: '/page',
    isAtRoot: true,
    access: 'public',
    summary: 'Much text.',
    response: Type.String(),
    async handle() {
      seen.begun += 1
      seen.now += 1
      seen.most = Math.max(seen.most, seen.now)
      await new Promise(resolve => setImmediate(resolve))
      seen.now -= 1
      return text
    },
  })
  return { page, seen }
}

const GET_PAGE = 'GET /page HTTP/1.1\r\nHost: x\r\n\r\n'

t.test('requests sent ahead are executed one at a time and answered in their order', async t => {
  const { page, seen } = pages(10)
  const { port } = await serveRoutes(t, [...testRoutes, page])
  const socket = dial(t, port)
  let answers = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answers += text))
  const note = `GET ${NOTES}/n3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\n\r\n`
  socket.write(GET_PAGE.repeat(50) + note + GET_PAGE.repeat(20))
  socket.write(GET_PAGE.repeat(50) + 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await new Promise(resolve => socket.once('end', resolve))
  const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  t.same(statuses, [...Array.from({ length: 121 }, () => '200'), '404'])
  t.match(answers.split('HTTP/1.1 ')[51], /note 3/)
  t.same(seen, { begun: 120, most: 1, now: 0 })
})

t.test('for a client that reads nothing little is begun, and it is cut off in the end', async t => {
  const { page, seen } = pages(1_000_000)
  const { port, clock, ask } = await serveRoutes(t, [...testRoutes, page])
  const socket = dial(t, port)
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.pause()
  socket.write(GET_PAGE.repeat(150))
  let before = -1
  await until('nothing more to be begun', async () => {
    if (seen.begun > 0 && seen.begun === before) return true
    before = seen.begun
    await ask({ path: NOTES })
    return undefined
  })
  t.ok(seen.begun < 100, `${seen.begun} begun`)
  await clock.advance(75_000)
  socket.resume()
  await closed
  t.ok(seen.begun < 100, `${seen.begun} begun`)
  t.match(await ask({ path: NOTES }), { status: 200 })
})

t.test('who sends hundreds of requests ahead loses his connection, and nobody else anything', async t => {
  const { page, seen } = pages(10)
  const { port, ask } = await serveRoutes(t, [...testRoutes, page])
  const socket = dial(t, port)
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.resume()
  socket.write(GET_PAGE.repeat(1_500))
  await closed
  t.ok(seen.begun < 250)
  t.match(await ask({ path: NOTES }), { status: 200 })
})

t.test(
  'beyond its bounds a connection is answered 503 and closed; when one ends another may come',
  async t => {
    const { port, ask } = await serveRoutes(t, testRoutes, { limits: { connectionsPerAddress: 3 } })
    const sockets = [dial(t, port), dial(t, port), dial(t, port)]
    await Promise.all(sockets.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    await until('the bound to be reached', async () => (await ask({ path: NOTES })).status === 503)
    const refused = await ask({ path: NOTES })
    t.match(refused, {
      status: 503,
      json: { error: { code: 'unavailable' } },
      headers: { 'retry-after': '5' },
    })
    for (const socket of sockets) socket.destroy()
    await until('room', async () => (await ask({ path: NOTES })).status === 200)
  },
)

const GET_LAST = 'GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** What a client from another network is answered: a status, or nothing. */
function answerFor(t: Test, port: number, localAddress: string): Promise<string> {
  const socket = dial(t, port, localAddress)
  let text = ''
  socket.setEncoding('utf8').on('data', (more: string) => (text += more))
  socket.write(GET_LAST)
  return new Promise(resolve => socket.once('close', () => resolve(text.slice(9, 12))))
}

t.test('a few addresses that hold all connections and open closed ones again shut nobody out', async t => {
  const { page } = pages(10)
  const { port } = await serveRoutes(t, [page], { limits: { connections: 40, connectionsPerAddress: 10 } })
  let isOver = false
  let opened = 0
  const hold = (address: string) => {
    if (isOver) return
    dial(t, port, address)
      .on('connect', () => (opened += 1))
      .on('close', () => setImmediate(() => hold(address)))
      .resume()
  }
  for (let network = 1; network <= 8; network += 1) for (let n = 0; n < 10; n += 1) hold(`127.0.${network}.1`)
  await until('all are taken', () => opened >= 80)
  const answers: string[] = []
  for (let n = 1; n <= 20; n += 1) answers.push(await answerFor(t, port, `127.0.100.${n}`))
  isOver = true
  t.same(answers, Array(20).fill('200'))
})

t.test('many addresses of one network give way to another network', async t => {
  const { page } = pages(10)
  const { port } = await serveRoutes(t, [page], { limits: { connections: 20, connectionsPerAddress: 10 } })
  let held = 0
  for (let n = 1; n <= 20; n += 1)
    dial(t, port, `127.0.1.${n}`)
      .on('connect', () => (held += 1))
      .on('close', () => (held -= 1))
      .resume()
  await until('all are taken', () => held === 20)
  t.equal(await answerFor(t, port, '127.0.2.1'), '200')
  await until('one has given way', () => held === 19)
})

t.test('connections of a reverse proxy are never cut for others', async t => {
  const { page } = pages(10)
  const { port } = await serveRoutes(t, [page], {
    limits: { connections: 20, connectionsPerAddress: 20, trustedProxies: ['127.0.7.0/24'] },
  })
  let held = 0
  for (const [address, count] of [
    ['127.0.0.1', 8],
    ['127.0.7.1', 12],
  ] as const)
    for (let n = 0; n < count; n += 1)
      dial(t, port, address)
        .on('connect', () => (held += 1))
        .on('close', () => (held -= 1))
        .resume()
  await until('all are taken', () => held === 20)
  t.equal(await answerFor(t, port, '127.0.2.1'), '503')
  t.equal(held, 20)
})

t.test(
  'while more than half are taken, heads that trickle in are cut and bodies that come on are not',
  async t => {
    const { port, clock } = await serveRoutes(t, testRoutes, {
      limits: { connections: 5, connectionsPerAddress: 5 },
    })
    const closed: string[] = []
    const open = (name: string, address: string, head: string) => {
      const socket = dial(t, port, address)
        .on('close', () => closed.push(name))
        .resume()
      socket.write(head)
      return socket
    }
    const post = `POST ${NOTES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n`
    const trickling = open('trickling', '127.0.1.1', 'GET /pa')
    const stalled = open('stalled', '127.0.2.1', `${post}{`)
    const steady = open('steady', '127.0.3.1', `${post}{`)
    for (let second = 0; second < 12; second += 1) {
      trickling.write('g')
      if (second % 3 === 0) steady.write(' '.repeat(10_000))
      for (const socket of [trickling, stalled, steady]) await readByServer(socket)
      await clock.advance(1_000)
    }
    await until('two are cut', () => closed.length === 2)
    t.same(closed.toSorted(), ['stalled', 'trickling'])
  },
)

const MEGABYTE = 1_024 * 1_024

t.test('bodies count as they arrive, and one workspace holds no memory that another needs', async t => {
  const upload = route({
    method: 'POST',
    path: '/uploads',
    operationId: 'upload',
    chapter: 'Email',
    access: 'key',
    summary: 'Takes much.',
    body: Type.Object({ text: Type.String() }),
    bodyLimit: 16 * MEGABYTE,
    response: Type.Object({ length: Type.Integer() }),
    handle: async ({ body }) => ({ length: body.text.length }),
  })
  const { port, ask } = await serveRoutes(t, [...testRoutes, upload])
  const answers: string[] = []
  const begin = (key: string, octets: number) => {
    const socket = dial(t, port)
    socket.on('data', data => answers.push(String(data)))
    socket.write(
      `POST /api/v1/uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${16 * MEGABYTE}\r\n\r\n`,
    )
    socket.write(Buffer.alloc(octets, '"'))
    return socket
  }
  const keys = ['unlimited', 'other_workspace', 'slow', 'reader']
  const send = (key: string, text: string) =>
    ask({ method: 'POST', path: '/api/v1/uploads', key, body: { text } })
  const mail = 'a'.repeat(40_000)
  const announced = Array.from({ length: 60 }, (_, at) => begin(keys[at % 2] ?? '', 1))
  for (const key of ['all', 'neighbour'])
    t.equal((await send(key, mail)).status, 200, 'what is announced and not sent takes nothing')
  for (const socket of announced) socket.destroy()
  const sent = Array.from({ length: 14 }, (_, at) => begin(keys[at % 2] ?? '', 15 * MEGABYTE))
  await until('the share to be used up', () => answers.length > 0)
  t.match(answers[0], /^HTTP\/1\.1 503 [^]*Retry-After: 5\r\n[^]*"code":"unavailable"/)
  for (const text of [mail, 'a'.repeat(5 * MEGABYTE)])
    t.equal((await send('neighbour', text)).status, 200, 'another workspace has its own share')
  t.equal((await send('unlimited', 'a')).status, 200, 'and a short body is always taken')
  for (const socket of sent) socket.destroy()
  await until('the share to be free again', async () => (await send('unlimited', mail)).status === 200)
})

t.test('a client that sends the rest of a refused upload is let go at once', async t => {
  const refuse = uploadRoute({
    method: 'POST',
    path: '/files',
    operationId: 'refuseFile',
    chapter: 'Email',
    access: 'contacts:write',
    summary: 'Refuses what it has begun to read.',
    upload: { octets: 16 * MEGABYTE, mediaTypes: ['text/plain'], fields: {}, example: 'a' },
    response: Type.Object({}),
    async handle(_, { pieces }) {
      for await (const piece of pieces)
        throw new AppError('validation_error', `refused after ${piece.length} octets`)
      return {}
    },
  })
  const { port } = await serveRoutes(t, [...testRoutes, refuse])
  for (const [coding, key, body] of [
    ['identity', '', Buffer.alloc(4 * MEGABYTE, 'a')],
    ['gzip', '', gzipSync(randomBytes(4 * MEGABYTE))],
    ['identity', 'Idempotency-Key: one\r\n', Buffer.alloc(4 * MEGABYTE, 'a')],
  ] as const) {
    const socket = dial(t, port)
    let answer = ''
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
    const closed = new Promise(resolve => socket.once('close', resolve))
    socket.write(
      'POST /api/v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Type: text/plain\r\n' +
        `${key}Content-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    socket.write(body)
    await closed
    t.match(answer, /^HTTP\/1\.1 400 [^]*refused after \d+ octets/, `${coding} ${key}`)
  }
})

t.test('100-continue is sent only if the body will be accepted', async t => {
  const { port } = await serveRoutes(t, testRoutes)
  const speak = async (key: string, octets: number) => {
    const socket = dial(t, port)
    socket.write(
      `POST ${NOTES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nExpect: 100-continue\r\n` +
        `Content-Length: ${octets}\r\n\r\n`,
    )
    return new Promise<string>(resolve => socket.once('data', data => resolve(String(data))))
  }
  t.match(await speak('all', 12), /^HTTP\/1\.1 100 /)
  t.match(await speak('wrong', 12), /^HTTP\/1\.1 401 /)
  t.match(await speak('all', 10_000_000), /^HTTP\/1\.1 400 /)
})

t.test('a large list is checked entry by entry, and the entry at fault is named', async t => {
  const list = route({
    method: 'POST',
    path: '/lists',
    operationId: 'makeList',
    chapter: 'Email',
    access: 'key',
    summary: 'Takes many.',
    body: Type.Object({
      entries: Type.Array(Type.Object({ text: Type.String({ maxLength: 1_000 }) }), {
        minItems: 1,
        maxItems: 1_000,
      }),
    }),
    bodyLimit: 4 * 1_024 * 1_024,
    bodyValues: 100_000,
    keepsAnswer: true,
    response: Type.Object({ count: Type.Integer() }),
    handle: async ({ body }) => ({ count: body.entries.length }),
  })
  const { ask } = await serveRoutes(t, [list])
  const entries = (count: number): { text: unknown }[] =>
    Array.from({ length: count }, () => ({ text: 'ü'.repeat(900) }))
  const post = (body: unknown, headers = {}) => ask({ method: 'POST', path: '/api/v1/lists', body, headers })
  for (const headers of [{}, { 'Idempotency-Key': 'a' }])
    t.match(await post({ entries: entries(1_000) }, headers), {
      status: 200,
      json: { data: { count: 1_000 } },
    })
  const broken = entries(1_000)
  broken[777] = { text: 5 }
  t.match(await post({ entries: broken }), { status: 400, json: { error: { path: 'entries.777.text' } } })
  t.match(await post({ entries: entries(1_001) }), { status: 400, json: { error: { path: 'entries' } } })
})
