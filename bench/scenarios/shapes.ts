/**
 * How long one request can hold everybody else up: bodies of every shape, large, dense, deep, broken, compressed.
 *
 * Called by `main.ts`. Each shape is sent to a server of its own, and stands beside the longest delay of its event loop and the
 * most memory it took meanwhile. A small mail goes before it, since the first request after a start is served by code that is
 * compiled for it; what that costs has a row of its own. Nothing is delivered (see `accept.ts`).
 */
import { request } from 'node:http'
import { gzipSync } from 'node:zlib'
import { peakText } from './accept.js'
import { SENDER, copyInstallation, serve, type Installation } from '../server/server-process.js'
import { openSilentServer } from '../peers/sinks.js'
import { printTable } from '../table.js'

/** Of the loop's longest delay, ms. */
const WANTED_MS = 50
/** Starting is not measured, and what follows the answer (queueing, checkpoints) is. */
const AFTER_START_MS = 2_500
const AFTER_ANSWER_MS = 1_000

interface Shape {
  readonly name: string
  readonly path?: string
  readonly body: () => string | Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** No other request goes before it. */
  readonly isFirst?: boolean
}

const LETTER = { to: 'ann@d1.example', from_email: SENDER, subject: 'Shape', text: 'Hello' }

const send = (fields: object) => JSON.stringify({ ...LETTER, ...fields })
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, at]))
const batch = (fields: (at: number) => object, count = 1_000) =>
  JSON.stringify({
    messages: Array.from({ length: count }, (_, at) => ({
      ...LETTER,
      to: `ann${at}@d1.example`,
      ...fields(at),
    })),
  })
const file = (megabytes: number) => [{ filename: 'a.bin', content: 'QUJD'.repeat(megabytes * 262_144) }]
const idempotent = { 'idempotency-key': 'shape' }

const SHAPES: readonly Shape[] = [
  { name: 'the first mail after a start', body: () => send({}), isFirst: true },
  { name: 'one small mail', body: () => send({}) },
  { name: 'to: 9,000,000 empty objects, 27 MB', body: () => `{"to":[${'{},'.repeat(9_000_000)}{}]}` },
  { name: 'template_data of 30,000 keys', body: () => send({ template_data: keys(30_000) }) },
  {
    name: 'the same, with Idempotency-Key',
    body: () => send({ template_data: keys(30_000) }),
    headers: idempotent,
  },
  { name: 'template_data of 1,000,000 keys', body: () => send({ template_data: keys(1_000_000) }) },
  { name: 'five million levels', body: () => `{"to":${'['.repeat(5_000_000)}` },
  { name: 'html of 28 MB', body: () => send({ html: 'x'.repeat(28_000_000) }) },
  { name: 'a field name of 28 MB', body: () => `{"${'k'.repeat(28_000_000)}":1}` },
  { name: 'a number of 28 MB', body: () => `{"to":${'1'.repeat(28_000_000)}}` },
  { name: '28 MB of spaces', body: () => ' '.repeat(28_000_000) },
  { name: '28 MB of escapes', body: () => `{"to":"${'\\n'.repeat(14_000_000)}"}` },
  {
    name: 'gzip of 1 GB of spaces',
    body: () => gzipSync(Buffer.alloc(2 ** 30, ' ')),
    headers: { 'content-encoding': 'gzip' },
  },
  { name: 'an attachment of 18 MB', body: () => send({ attachments: file(18) }) },
  {
    name: 'the same, with Idempotency-Key',
    body: () => send({ attachments: file(18) }),
    headers: idempotent,
  },
  {
    name: 'batch of 1,000 of 60 KB',
    path: 'batch',
    body: () => batch(() => ({ html: '<p>text</p>\n'.repeat(5_000) })),
  },
  {
    name: 'batch of 1,000 of 100 KB',
    path: 'batch',
    body: () => batch(() => ({ html: '<p>text</p>\n'.repeat(8_500) })),
  },
  {
    name: 'batch of 1,000 with 450 keys each',
    path: 'batch',
    body: () => batch(() => ({ template_data: keys(450) })),
  },
  { name: 'batch of 200 MB', path: 'batch', body: () => batch(() => ({ html: 'x'.repeat(200_000) })) },
]

export async function measureShapes(original: Installation): Promise<void> {
  const silent = await openSilentServer()
  const rows: string[][] = []
  for (const [number, shape] of SHAPES.entries()) {
    const installation = await copyInstallation(original, `shape${number}`)
    const outgoing = { port: silent.port, connections: 1, connectionsPerDestination: 1, reportsDelays: true }
    const server = await serve(installation, outgoing)
    if (!shape.isFirst) await post(server.port, installation.key, {}, send({}))
    await sleep(AFTER_START_MS)
    const body = shape.body()
    const startedAt = performance.now()
    const status = await post(server.port, installation.key, shape, body)
    const tookMs = performance.now() - startedAt
    await sleep(AFTER_ANSWER_MS)
    const peak = peakText(server)
    await server.stop()
    const most = server.delays()?.mostMs ?? NaN
    const sizes = `${(Buffer.byteLength(body) / 1e6).toFixed(1)} MB`
    const over = most > WANTED_MS ? 'over' : ''
    rows.push([
      shape.name,
      sizes,
      `${status}`,
      tookMs.toFixed(0),
      most.toFixed(0),
      `${WANTED_MS}`,
      over,
      peak,
    ])
  }
  await silent.stop()
  printTable(
    'One request of any shape: how long it holds the event loop',
    [['', 'body', 'status', 'answered ms', 'longest delay ms', 'limit ms', '', 'peak memory'], ...rows],
    ['Each on a server of its own, one request after a small mail.'],
  )
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

function post(
  port: number,
  key: string,
  { path = 'send', headers }: Pick<Shape, 'path' | 'headers'>,
  body: string | Buffer,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sending = request(
      {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: `/api/v1/email/${path}`,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
      },
      response => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      },
    )
    sending.on('error', reject).end(body)
  })
}
