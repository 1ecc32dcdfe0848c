/**
 * Effect of one workspace, or one address, on another: it takes all it can get of something that all share, and the other's requests are
 * timed meanwhile.
 *
 * Called by `main.ts`. Every request of the other is answered with a 2xx, or the measurement fails.
 */
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { animatedPng, picture } from '../../test/support/content/images.js'
import { fillAudience } from '../fill/fill-audience.js'
import { percentile, short } from '../numbers.js'
import { sendLoad, type Load } from '../peers/api-load.js'
import { openSilentServer } from '../peers/sinks.js'
import { addWorkspace, copyInstallation, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'

export interface SharesOptions {
  /** Of the workspace that takes. */
  readonly contacts: number
  readonly limitMs: number
}

/** Takes until it is stopped. */
type Attack = (target: Target) => () => void

interface Target {
  readonly port: number
  readonly key: string
  /** Paths of images that are larger than what is kept in memory. */
  readonly images: readonly string[]
}

const SENDER = 'news@neighbour.example'
const WANTED_MS = 100
const MEGABYTE = 1_024 * 1_024
const WARM_UP_REQUESTS = 20
const SETTLE_MS = 500

const ATTACKS: readonly (readonly [name: string, attack: Attack])[] = [
  ['nothing', () => () => {}],
  [
    '180 searches at a time',
    flood(180, at => ({ path: `/api/v1/contacts?search=a${at % 7}%20e${at % 11}` })),
  ],
  [
    '40 images unread',
    ({ port, images }) => {
      const paths = Array.from({ length: 40 }, (_, at) => images[at % images.length] ?? '')
      return hold(
        port,
        paths.map(path => [`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`]),
      )
    },
  ],
  [
    '200 bodies of 4 MB unfinished',
    ({ port, key }) => {
      const head = `POST /api/v1/email/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${4 * MEGABYTE}\r\n\r\n`
      return hold(
        port,
        Array.from({ length: 200 }, () => [head, Buffer.alloc(4 * MEGABYTE - 1, ' ')]),
      )
    },
  ],
  [
    '100 sign-ins at a time',
    flood(100, at => ({
      path: '/api/admin/v1/session',
      body: JSON.stringify({ email: `made.up.${at}@x.example`, password: 'correct horse battery' }),
    })),
  ],
]

export async function measureShares(original: Installation, options: SharesOptions): Promise<void> {
  const installation = await copyInstallation(original, 'shares')
  await fillAudience(installation, options.contacts)
  const key = await addWorkspace(installation, SENDER)
  const silent = await openSilentServer()
  const outgoing = { port: silent.port, connections: 1, connectionsPerDestination: 1 }
  const server = await serve(installation, outgoing)
  const { port } = server
  const images: string[] = []
  for (let seed = 1; seed <= 8; seed++) images.push(await upload(port, installation.key, noise(3_000, seed)))
  const image = await upload(port, key, await picture('png', 200, 100))
  const kinds: readonly (readonly [string, Pick<Load, 'base' | 'path' | 'body'>])[] = [
    ['POST /email/send', { body: mailTo }],
    ['GET /contacts', { path: () => '/contacts?search=ann' }],
    ['GET /m/', { base: '', path: () => image }],
  ]
  const rows: string[][] = []
  for (const [name, attack] of ATTACKS) {
    const stop = attack({ port, key: installation.key, images })
    await new Promise(resolve => setTimeout(resolve, SETTLE_MS))
    for (const [kind, load] of kinds) {
      const target = { port, key, connections: 1, limitMs: options.limitMs, ...load }
      await sendLoad({ ...target, requests: WARM_UP_REQUESTS })
      const { requests, latencies } = await sendLoad({ ...target, requests: 5_000 })
      const p99 = percentile(latencies, 0.99)
      const [mid, last] = [short(percentile(latencies, 0.5)), short(p99)]
      rows.push([name, kind, `${requests}`, mid, last, `${WANTED_MS}`, p99 > WANTED_MS ? 'over' : ''])
    }
    stop()
  }
  await server.stop()
  await silent.stop()
  printTable(
    'Shares: requests of a workspace while another, or an address, does its worst',
    [['taken by one', 'asked by the other', 'requests', 'median ms', 'p99 ms', 'limit ms', ''], ...rows],
    [
      `The one has ${options.contacts} contacts. The other has one connection, and every request is answered with a 2xx.`,
    ],
  )
}

function mailTo(number: number): Buffer {
  return Buffer.from(
    JSON.stringify({
      from_email: SENDER,
      to: `r${number}@x${number % 50}.example`,
      subject: 'Hello',
      html: '<p>Hello</p>',
    }),
  )
}

/** So many requests at a time, whatever is answered. A GET with the key, or a POST without one. */
function flood(
  connections: number,
  what: (at: number) => { readonly path: string; readonly body?: string },
): Attack {
  return ({ port, key }) => {
    const agent = new Agent({ keepAlive: true, maxSockets: connections })
    let isOver = false
    let at = 0
    const next = (): void => {
      if (isOver) return
      const { path, body } = what(at++)
      const headers =
        body === undefined
          ? { authorization: `Bearer ${key}` }
          : { 'content-type': 'application/json', origin: `http://127.0.0.1:${port}` }
      const method = body === undefined ? 'GET' : 'POST'
      request({ agent, host: '127.0.0.1', port, method, path, headers }, response => {
        response.resume().on('end', next)
      })
        .on('error', () => {})
        .end(body)
    }
    for (let n = 0; n < connections; n++) next()
    return () => {
      isOver = true
      agent.destroy()
    }
  }
}

/** Connections that send this, and read nothing. */
function hold(port: number, requests: readonly (readonly (string | Buffer)[])[]): () => void {
  const sockets: Socket[] = requests.map(pieces => {
    const socket = connect(port, '127.0.0.1').pause()
    socket.on('error', () => {})
    for (const piece of pieces) socket.write(piece)
    return socket
  })
  return () => sockets.forEach(socket => socket.destroy())
}

/** @returns the path of its public file */
async function upload(port: number, key: string, file: Buffer | Uint8Array): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/media`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'image/png' },
    body: Buffer.from(file),
  })
  const { data } = (await response.json()) as { data: { url: string } }
  return new URL(data.url).pathname
}

/** Nine megabytes that are stored as they are. */
function noise(side: number, seed: number): Buffer {
  const rows = Buffer.alloc((side + 1) * side)
  for (let at = 0, state = seed; at < rows.length; at++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    rows[at] = at % (side + 1) === 0 ? 0 : (state >> 16) & 255
  }
  return animatedPng(side, rows)
}
