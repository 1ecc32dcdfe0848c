/** Answers made while they are sent: how many run at a time, and clients that take nothing. */
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { downloadRoute } from '../../src/http/route.js'
import { STALLED_MS } from '../../src/http/answer/download.js'
import { serveRoutes } from '../support/api/api.js'
import { serverEndOf } from '../support/read-by-server.js'
import { until } from '../support/until.js'

const PIECE = 'ü'.repeat(500_000)

async function open(t: Test) {
  const made = { pieces: 0, begun: 0, ended: 0 }
  const download = (path: string, count: number) =>
    downloadRoute({
      method: 'GET',
      path,
      access: 'contacts:read',
      operationId: `get${count}`,
      chapter: 'Email',
      summary: 'A file.',
      mediaType: 'text/csv',
      exampleAnswer: 'x',
      handle: async () => ({
        fileName: 'file.csv',
        async *pieces(gone) {
          made.begun += 1
          try {
            for (let at = 0; at < count && !gone.aborted; at += 1) {
              made.pieces += 1
              yield PIECE
            }
          } finally {
            made.ended += 1
          }
        },
      }),
    })
  const api = await serveRoutes(t, [download('/endless', 1_000_000), download('/short', 3)])
  const sockets: Socket[] = []
  t.teardown(() => sockets.forEach(socket => socket.destroy()))
  /** Asks, and reads nothing. */
  const stall = (key = 'all') => {
    const socket = connect(api.port, '127.0.0.1')
      .pause()
      .on('error', () => {})
    sockets.push(socket)
    socket.write(`GET /api/v1/endless HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    return socket
  }
  const short = async (key: string) => {
    const answer = await fetch(`http://127.0.0.1:${api.port}/api/v1/short`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), text: await answer.text() }
  }
  return { ...api, made, stall, short }
}

t.test('a download comes whole', async t => {
  const { short } = await open(t)
  const { status, text } = await short('all')
  t.equal(status, 200)
  t.equal(text, PIECE.repeat(3))
})

t.test('unread downloads are limited per key and workspace, and further ones get a retry later', async t => {
  const { stall, short, made } = await open(t)
  for (const key of ['all', 'all', 'unlimited', 'unlimited']) stall(key)
  await until('all to be under way', () => made.begun === 4)
  t.match(await short('all'), {
    status: 429,
    retryAfter: '10',
    text: /"rate_limited".*at most 2 concurrent downloads are allowed per key/,
  })
  t.match(await short('slow'), {
    status: 429,
    text: /at most 4 concurrent downloads are allowed per workspace/,
  })
})

t.test('a client that takes nothing for ten seconds is cut off, and its place is free', async t => {
  const { stall, short, made, clock } = await open(t)
  const clients = [stall(), stall()]
  await until('both to be under way', () => made.begun === 2)
  const ends = await Promise.all(clients.map(serverEndOf))
  t.equal((await short('all')).status, 429)
  await until('nothing more to be taken', async () => {
    const before = made.pieces
    // The server serves another request meanwhile, and could have written more.
    await short('all')
    return made.pieces === before && ends.every(({ writableNeedDrain }) => writableNeedDrain)
  })
  await clock.advance(STALLED_MS + 1)
  await until('both to end', () => made.ended === 2)
  t.equal((await short('all')).status, 200)
})

t.test('what nobody waits for any more is not made to its end', async t => {
  const { stall, short, made } = await open(t)
  const [one, other] = [stall(), stall()]
  await until('both to be under way', () => made.begun === 2)
  one.destroy()
  other.destroy()
  await until('both to end', () => made.ended === 2)
  t.equal((await short('all')).status, 200)
})
