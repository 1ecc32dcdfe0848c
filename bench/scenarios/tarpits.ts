/**
 * Cost of destinations that never take mail for one that does: time from acceptance to delivery, and the time a stop takes.
 *
 * Called by `main.ts`. The tarpits, a thousand sites of five kinds, are a process of their own on 127.0.0.0/8, which the
 * server finds by routes and by a name server of ours. Fails: throws where a request is refused.
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'
import { sendLoad } from '../peers/api-load.js'
import { startNode, stop } from '../server/children.js'
import { percentile, short } from '../numbers.js'
import {
  copyInstallation,
  SENDER,
  serve,
  type Installation,
  type ServerProcess,
} from '../server/server-process.js'
import { printTable } from '../table.js'
import { addressOf, KINDS } from '../peers/tarpit-addresses.js'

const [NEVER_GREETS, SLOW, STALLS, TAKES] = KINDS.keys()
/** Of each kind, two of which are the name server's. */
const SITES = 200
const COLD_SITES = 200
const MESSAGES_PER_SITE = 10
const GRACE_SECONDS = 5
const LARGE_OCTETS = 12 * 1_024 * 1_024

export interface TarpitOptions {
  /** How long mail to the healthy destinations is sent beside each trouble. */
  readonly seconds: number
}

interface Trouble {
  readonly name: string
  readonly fill: (server: ServerProcess, key: string) => Promise<void>
}

const range = (count: number) => Array.from({ length: count }, (_, number) => number)
/** Small attachments have to be read as well, and must not wait for the memory of large ones. */
const SMALL = [{ filename: 'invoice.bin', content: Buffer.alloc(10_000, 'x').toString('base64') }]
const letter = (to: string) => ({ to, from_email: SENDER, subject: 'Hello', text: 'Hello' })
const json = (value: unknown) => Buffer.from(JSON.stringify(value))

export async function measureTarpits(original: Installation, { seconds }: TarpitOptions): Promise<void> {
  const tarpits = startNode([
    fileURLToPath(new URL('../peers/tarpit-program.js', import.meta.url)),
    ...[SITES, SITES, SITES, COLD_SITES + 1].map(String),
  ])
  const [line] = (await once(createInterface({ input: tarpits.stdout! }), 'line')) as [string]
  const ports = JSON.parse(line) as { port: number; dnsPort: number }
  const rows: string[][] = []
  for (const trouble of TROUBLES) rows.push(await measure(original, trouble, ports, seconds))
  await stop(tarpits)
  printTable(
    'Mail to destinations that answer, beside destinations that do not: from acceptance to delivery',
    [
      [
        'trouble',
        'proven: mails',
        'left',
        'p50 ms',
        'p99 ms',
        'most ms',
        'new: mails',
        'left',
        'p50 ms',
        'p99 ms',
        'stop s',
      ],
      ...rows,
    ],
    [
      'Proven: one destination that has taken mail before, two mails a second. New: one mail a second, each to a destination that',
      `was never asked. mta.connections = 500; shutdown_grace = ${GRACE_SECONDS} s. Kinds: ${KINDS.slice(0, 3).join(', ')}, DNS silent, MTA-STS host silent.`,
    ],
  )
}

const TROUBLES: readonly Trouble[] = [
  { name: 'none', fill: async () => {} },
  {
    name: '10,000 messages to 1,000 tarpits',
    fill: (server, key) =>
      sendBatches(
        server,
        key,
        range(SITES * MESSAGES_PER_SITE).flatMap(n =>
          ['never', 'slow', 'stalls', 'silent', 'sts'].map(kind => `a${n}@${n % SITES}.${kind}.example`),
        ),
      ),
  },
  {
    name: '2,000 domains with silent name servers',
    fill: (server, key) =>
      sendBatches(
        server,
        key,
        range(2_000).map(n => `a@${n}.silent.example`),
      ),
  },
  {
    name: '8 mails of 12 MB to a site that stalls',
    async fill({ port }, key) {
      const content = Buffer.alloc(LARGE_OCTETS, 'x').toString('base64')
      const attachments = [{ filename: 'a.bin', content }]
      const body = () => json({ ...letter('a@0.stalls.example'), attachments })
      await sendLoad({ port, key, connections: 1, requests: 8, limitMs: 60_000, body })
    },
  },
]

async function sendBatches(
  { port }: ServerProcess,
  key: string,
  recipients: readonly string[],
): Promise<void> {
  const most = 1_000
  await sendLoad({
    port,
    key,
    connections: 1,
    requests: Math.ceil(recipients.length / most),
    limitMs: 60_000,
    path: () => '/email/batch',
    body: number =>
      json({ messages: recipients.slice(number * most, (number + 1) * most).map(to => letter(to)) }),
  })
}

async function measure(
  original: Installation,
  { name, fill }: Trouble,
  { port, dnsPort }: { port: number; dnsPort: number },
  seconds: number,
): Promise<string[]> {
  const installation = await copyInstallation(original, `tarpits-${name.replace(/\W+/g, '-')}`)
  const { key } = installation
  const server = await serve(installation, {
    port,
    connections: 500,
    connectionsPerDestination: 20,
    shutdownGrace: `${GRACE_SECONDS}s`,
    destinations: destinations(port, dnsPort),
  })
  const send = (to: string) =>
    sendLoad({
      port: server.port,
      key,
      connections: 1,
      requests: 1,
      limitMs: 60_000,
      body: () => json({ ...letter(to), attachments: SMALL }),
    })
  await send('first@healthy.example')
  await sleep(500)
  await fill(server, key)
  for (let second = 0; second < seconds; second += 1) {
    await Promise.all([send(`a${second}@healthy.example`), send(`a@${second % COLD_SITES}.cold.example`)])
    await sleep(500)
    await send(`b${second}@healthy.example`)
    await sleep(500)
  }
  const stoppingAt = performance.now()
  await server.stop()
  const stopSeconds = (performance.now() - stoppingAt) / 1_000
  const cells = async (domain: string) => cellsOf(await deliveryTimes(installation.dataDir, domain))
  const proven = await cells('healthy.example')
  const cold = await cells('cold.example')
  return [name, ...proven, ...cold.toSpliced(4, 1), short(stopSeconds)]
}

function destinations(port: number, dnsPort: number): string {
  const route = (domain: string, kind: number, number: number) =>
    `[[mta.routes]]\ndomain = "${domain}"\nhost = "${addressOf(kind, number)}"\nport = ${port}\ntls = "none"\n`
  const sites = range(SITES).flatMap(n => [
    route(`${n}.never.example`, NEVER_GREETS!, n),
    route(`${n}.slow.example`, SLOW!, n),
    route(`${n}.stalls.example`, STALLS!, n),
  ])
  const cold = range(COLD_SITES).map(n => route(`${n}.cold.example`, TAKES!, n))
  return [
    ...sites,
    ...cold,
    route('healthy.example', TAKES!, COLD_SITES),
    `[dns]\nservers = ["127.0.0.1:${dnsPort}"]\n`,
  ].join('')
}

/** Ms from acceptance to delivery, undefined for what has not left. */
async function deliveryTimes(dataDir: string, domain: string): Promise<(number | undefined)[]> {
  const file = join(dataDir, 'postroad.db')
  const database = await openSqlite({ file, clock: systemClock, mayMigrate: false })
  try {
    const rows = await database.reader
      .selectFrom('messages')
      .select(['created_at', 'delivered_at'])
      .where('recipient', 'like', `%${domain}`)
      .execute()
    return rows.map(row => (row.delivered_at === null ? undefined : row.delivered_at - row.created_at))
  } finally {
    await database[Symbol.asyncDispose]()
  }
}

/** Number, left, p50, p99, most. */
function cellsOf(times: readonly (number | undefined)[]): string[] {
  const left = times.filter(time => time !== undefined)
  // Mail that has not left counts as never.
  const all = times.map(time => time ?? Infinity)
  return [
    `${times.length}`,
    `${left.length}`,
    ...[0.5, 0.99].map(part => msText(percentile(all, part))),
    msText(Math.max(...all)),
  ]
}

function msText(ms: number): string {
  return ms === Infinity ? 'never' : short(ms)
}
