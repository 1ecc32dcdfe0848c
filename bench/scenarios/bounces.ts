/**
 * A flood of bounces: what it does to the REST API, and whether they are read as fast as they come.
 *
 * Called by `main.ts`. So many a second are sent to the inbound listener, each to the signed return path of a message of its
 * own, while a client asks the API for a status again and again. Fails: throws where a bounce was refused or left no record.
 */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { plainBox } from '../../src/accounts/secret-box.js'
import { readSecrets } from '../../src/accounts/secret-store.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { makeReturnPath } from '../../src/mail/return-path.js'
import { systemClock } from '../../src/world/time/clock.js'
import { peakText } from './accept.js'
import { fillQueue } from '../fill/fill-queue.js'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { median, percentile, short } from '../numbers.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'

export interface BounceOptions {
  readonly perSecond: number
  readonly seconds: number
}

interface Returned {
  readonly recipient: string
  readonly returnPath: string
}

const CLIENTS = 10
const DOMAINS = 100
const DUE_IN_MS = 86_400_000
export const RETURN_PATH_DOMAIN = 'bounce.mail.bench.example'
/** Between two requests to the API. */
const ASK_EVERY_MS = 10
const READ_LIMIT_MS = 60_000

export async function measureBounces(original: Installation, options: BounceOptions): Promise<void> {
  const { perSecond, seconds } = options
  const installation = await copyInstallation(original, 'bounces')
  const messages = perSecond * seconds
  await fillQueue(installation, {
    messages,
    domains: DOMAINS,
    dueInMs: DUE_IN_MS,
    priority: PRIORITIES.campaign,
  })
  const returned = await returnedMails(installation)
  const server = await serve(installation, {
    port: 9,
    connections: 1,
    connectionsPerDestination: 1,
    reportsDelays: true,
  })
  const quiet = await latenciesFor(server.port, installation.key, sleep(2_000))
  const startedAt = performance.now()
  const flood = Promise.all(
    Array.from({ length: CLIENTS }, (_, client) =>
      sendAll(
        server.inboundPort,
        returned.filter((_mail, index) => index % CLIENTS === client),
        perSecond / CLIENTS,
      ),
    ),
  )
  const busy = await latenciesFor(server.port, installation.key, flood)
  const sentSeconds = (performance.now() - startedAt) / 1_000
  await untilRead(installation, messages)
  const readSeconds = (performance.now() - startedAt) / 1_000
  const peak = peakText(server)
  await server.stop()
  const delays = server.delays()
  printTable(
    `Bounces: ${perSecond} a second for ${seconds} s into the inbound listener, and the REST API meanwhile`,
    [
      ['', 'requests', 'median ms', 'p99 ms', 'most ms'],
      ['API without bounces', ...cells(quiet)],
      ['API with bounces', ...cells(busy)],
    ],
    [
      `${messages} bounces taken in ${short(sentSeconds)} s (${short(messages / sentSeconds)}/s), all recorded after ${short(readSeconds)} s; ` +
        `event loop delay p99 ${short(delays?.p99Ms ?? NaN)} ms; peak memory ${peak}.`,
    ],
  )
}

function cells(latencies: readonly number[]): string[] {
  return [
    `${latencies.length}`,
    short(median(latencies)),
    short(percentile(latencies, 0.99)),
    short(Math.max(...latencies)),
  ]
}

export async function returnedMails({ dataDir }: Installation): Promise<Returned[]> {
  const file = join(dataDir, 'postroad.db')
  const database = await openSqlite({ file, clock: systemClock, mayMigrate: false })
  try {
    const [key] = await readSecrets(database.reader, 'return_path', plainBox)
    if (!key) throw new Error('the installation has no secret for return paths')
    const rows = await database.reader.selectFrom('messages').select(['id', 'recipient']).execute()
    return rows.map(({ id, recipient }) => ({
      recipient,
      returnPath: makeReturnPath({ messageId: id, recipient, key, domain: RETURN_PATH_DOMAIN }),
    }))
  } finally {
    await database[Symbol.asyncDispose]()
  }
}

/** One client on one connection, in step with the clock. */
export async function sendAll(port: number, mails: readonly Returned[], perSecond: number): Promise<void> {
  const client = new RawClient(port)
  await client.expect('220')
  await client.say('EHLO mx.example.com\r\n', '250')
  const startedAt = performance.now()
  for (const [index, { recipient, returnPath }] of mails.entries()) {
    const earlyMs = (index * 1_000) / perSecond - (performance.now() - startedAt)
    if (earlyMs > 1) await sleep(earlyMs)
    await client.say(`MAIL FROM:<>\r\nRCPT TO:<${returnPath}>\r\nDATA\r\n`, '354')
    await client.say(noticeFor(recipient, returnPath), '250')
  }
  await client.say('QUIT\r\n', '221')
}

/** Reads replies line by line; knows no more of SMTP than that. */
export class RawClient {
  private readonly socket: Socket
  private text = ''
  private wake: () => void = () => {}

  /** @param address of the client */
  constructor(port: number, address = '127.0.0.1') {
    this.socket = connect({ port, host: '127.0.0.1', localAddress: address }).setEncoding('latin1')
    this.socket.on('data', (text: string) => {
      this.text += text
      this.wake()
    })
    this.socket.on('error', () => {}).on('close', () => this.wake())
  }

  close(): void {
    this.socket.destroy()
  }

  async say(text: string, code: string): Promise<void> {
    this.socket.write(text)
    await this.expect(code)
  }

  /** Waits for a last line with this code; earlier replies of the same group have to be 2xx. */
  async expect(code: string): Promise<void> {
    for (;;) {
      const end = this.text.indexOf('\r\n')
      if (end < 0) {
        if (this.socket.destroyed) throw new Error('the inbound listener closed')
        await new Promise<void>(resolve => (this.wake = resolve))
        continue
      }
      const line = this.text.slice(0, end)
      this.text = this.text.slice(end + 2)
      if (line.startsWith(`${code} `)) return
      if (!line.startsWith('2')) throw new Error(`the inbound listener answered ${line}`)
    }
  }
}

function noticeFor(recipient: string, returnPath: string): string {
  return [
    'From: Mail Delivery System <mailer-daemon@mx.example.com>',
    `To: <${returnPath}>`,
    'Subject: Undelivered Mail Returned to Sender',
    `Message-ID: <${randomBytes(8).toString('hex')}@mx.example.com>`,
    'Date: Sat, 21 Nov 2026 10:00:00 +0000',
    'Auto-Submitted: auto-replied',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b0"',
    '',
    '--b0',
    'Content-Type: text/plain; charset=us-ascii',
    '',
    'The mail could not be delivered to one of its recipients.',
    '--b0',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.example.com',
    '',
    `Final-Recipient: rfc822; ${recipient}`,
    'Action: failed',
    'Status: 5.1.1',
    `Diagnostic-Code: smtp; 550 5.1.1 <${recipient}>: Recipient address rejected: User unknown`,
    '--b0',
    'Content-Type: text/rfc822-headers',
    '',
    'From: News <news@bench.example>',
    `To: <${recipient}>`,
    'Subject: Letter',
    '',
    '--b0--',
    '.',
    '',
  ].join('\r\n')
}

/** Asks the API again and again until `over` has resolved. @returns how long each answer took, ms */
async function latenciesFor(port: number, key: string, over: Promise<unknown>): Promise<number[]> {
  const headers = { Authorization: `Bearer ${key}` }
  const latencies: number[] = []
  const state = { isOver: false }
  const end = over.finally(() => (state.isOver = true))
  while (!state.isOver) {
    const startedAt = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/bounces?limit=1`, { headers })
    await answer.arrayBuffer()
    if (!answer.ok) throw new Error(`the API answered ${answer.status}`)
    latencies.push(performance.now() - startedAt)
    await sleep(ASK_EVERY_MS)
  }
  await end
  return latencies
}

export async function untilRead({ dataDir }: Installation, wanted: number): Promise<void> {
  const file = join(dataDir, 'postroad.db')
  const database = await openSqlite({ file, clock: systemClock, mayMigrate: false })
  try {
    const startedAt = performance.now()
    for (;;) {
      const { recorded } = await database.reader
        .selectFrom('bounces')
        .select(e => e.fn.countAll<number>().as('recorded'))
        .executeTakeFirstOrThrow()
      if (recorded === wanted) return
      if (performance.now() - startedAt > READ_LIMIT_MS)
        throw new Error(`${recorded} of ${wanted} bounces were recorded`)
      await sleep(200)
    }
  } finally {
    await database[Symbol.asyncDispose]()
  }
}
