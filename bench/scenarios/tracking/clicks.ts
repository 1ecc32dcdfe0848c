/**
 * Clicks and openings: how soon readers are led on when thousands come each second, and whether all are counted, kill -9 included.
 *
 * Called by `main.ts`. Mails are sent first and their URLs read from what arrives; then readers follow them at an even pace, half of them
 * links and half pixels, while the API is asked and mail goes on being delivered beside it. Fails: throws where a visit that was
 * answered is not counted in time.
 */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SMTPServer } from 'smtp-server'
import { decodeQuotedPrintable } from '../../../src/mail/mime/transfer-encoding.js'
import { recipient, sendRequest } from '../../fill/letters.js'
import { percentile, short } from '../../numbers.js'
import { sendLoad } from '../../peers/api-load.js'
import { openProbes } from '../../peers/probes.js'
import type { VisitLoad, VisitReport } from '../../peers/visit-load-program.js'
import { start } from '../../server/children.js'
import { numberOfEvents, untilQueueIsEmpty } from '../../server/queue-watch.js'
import {
  copyInstallation,
  SENDER,
  serve,
  type Installation,
  type ServerProcess,
} from '../../server/server-process.js'
import { printTable } from '../../table.js'
import { peakText } from '../accept.js'

export interface ClickOptions {
  readonly perSecond: number
  readonly seconds: number
  readonly profile: boolean
}

/** So many that no message has more visits in a minute than are counted. */
const MAILS = 4_000
const RECIPIENTS_PER_REQUEST = 100
const CONNECTIONS = 200
/** Before latencies are told: a program that was just started is compiled while it answers. */
const WARM_UP_SECONDS = 3
const WANTED_MS = 20
/** Between two questions to the API, and two mails. */
const PROBE_MS = 100
const COUNT_LIMIT_MS = 300_000
const KINDS = ['email.clicked', 'email.opened']

const PROGRAM = fileURLToPath(new URL('../../peers/visit-load-program.js', import.meta.url))

export async function measureClicks(original: Installation, options: ClickOptions): Promise<void> {
  const mailbox = await openMailbox()
  const steady = await measure(original, 'clicks', mailbox, options, false)
  const killed = await measure(original, 'clicks-killed', mailbox, { ...options, profile: false }, true)
  mailbox.stop()
  printTable(
    `Clicks and openings: ${options.perSecond} a second for ${options.seconds} s, on ${CONNECTIONS} connections`,
    [
      [
        '',
        'answered',
        '/s',
        'median ms',
        'p99 ms',
        'limit ms',
        'lost',
        'API p99 ms',
        'send p99 ms',
        'CPU ms/1,000',
        'of readers',
        'loop p99 ms',
        'peak memory',
      ],
      steady,
      killed,
    ],
    [
      'From when a visit was due to its redirect or picture. Lost: answered and not counted. Killed: SIGKILL halfway, and started again.',
    ],
  )
}

async function measure(
  original: Installation,
  name: string,
  mailbox: Mailbox,
  { perSecond, seconds, profile }: ClickOptions,
  isKilled: boolean,
): Promise<string[]> {
  const installation = await copyInstallation(original, name)
  const outgoing = {
    port: mailbox.port,
    connections: 100,
    connectionsPerDestination: 20,
    reportsDelays: true,
  }
  let server = await serve(installation, outgoing, profile ? name : undefined)
  const paths = await sendMails(server, installation, mailbox)
  const load = { paths, perSecond, connections: CONNECTIONS }
  const probes = probesOf(server, installation)
  const warmUp = isKilled ? undefined : await visit({ ...load, port: server.port, seconds: WARM_UP_SECONDS })
  const before = server.cpuSeconds()
  if (!isKilled) probes.begin()
  const visiting = visit({ ...load, port: server.port, seconds: isKilled ? seconds / 2 : seconds })
  if (isKilled) {
    await sleep(seconds * 250)
    process.kill(server.pid, 'SIGKILL')
  }
  const reports = [await visiting]
  const cpu = isKilled ? NaN : server.cpuSeconds() - before
  const { reads, sends } = isKilled ? { reads: [], sends: [] } : probes.end()
  await probes.close()
  if (isKilled) {
    server = await serve(installation, outgoing)
    reports.push(await visit({ ...load, port: server.port, seconds: seconds / 2 }))
  }
  const answered = reports.reduce((sum, report) => sum + report.answered, 0)
  const refused = reports.reduce((sum, report) => sum + report.refused, 0)
  if (refused > 0) throw new Error(`${refused} visits were answered by neither a redirect nor a picture`)
  const all = answered + (warmUp?.answered ?? 0)
  const lost = all - (await counted(installation, all))
  const peak = peakText(server)
  await server.stop()
  if (lost > 0) throw new Error(`${lost} of ${all} visits were answered and are not counted`)
  const latencies = reports.flatMap(report => [...report.latencies])
  return [
    isKilled ? 'killed on the way' : 'undisturbed',
    `${answered}`,
    short(answered / reports.reduce((sum, report) => sum + report.seconds, 0)),
    short(percentile(latencies, 0.5)),
    isKilled ? '-' : short(percentile(latencies, 0.99)),
    isKilled ? '-' : `${WANTED_MS}`,
    `${Math.max(0, lost)}`,
    isKilled ? '-' : short(percentile(reads, 0.99)),
    isKilled ? '-' : short(percentile(sends, 0.99)),
    isKilled ? '-' : short((cpu * 1_000_000) / answered),
    short((reports.reduce((sum, report) => sum + report.cpuSeconds, 0) * 1_000_000) / answered),
    short(server.delays()?.p99Ms ?? NaN),
    peak,
  ]
}

function probesOf({ port }: ServerProcess, { key }: Installation) {
  return openProbes({
    port,
    key,
    path: () => '/email?limit=20',
    body: number => sendRequest(number, recipient(MAILS + number, 20)),
    everyMs: PROBE_MS,
  })
}

/** @returns the paths of a link and of a pixel for each mail, in turns that come back to a mail after a while */
async function sendMails(
  server: ServerProcess,
  { key, dataDir }: Installation,
  mailbox: Mailbox,
): Promise<string[]> {
  mailbox.clear()
  await sendLoad({
    port: server.port,
    key,
    connections: 4,
    requests: MAILS / RECIPIENTS_PER_REQUEST,
    limitMs: Infinity,
    body: number =>
      Buffer.from(
        JSON.stringify({
          to: Array.from({ length: RECIPIENTS_PER_REQUEST }, (_, at) =>
            recipient(number * RECIPIENTS_PER_REQUEST + at, 20),
          ),
          from_email: SENDER,
          subject: 'News',
          html: '<p><a href="https://shop.example/a?id=1&amp;src=mail">one</a></p>',
        }),
      ),
  })
  await untilQueueIsEmpty(dataDir)
  const { clicks, pixels } = mailbox
  if (clicks.length !== MAILS || pixels.length !== MAILS)
    throw new Error(`${clicks.length} links and ${pixels.length} pixels arrived of ${MAILS} mails`)
  return clicks.flatMap((click, at) => [click, pixels[(at + MAILS / 2) % MAILS] ?? ''])
}

/** Waits for as many. @returns how many were counted */
async function counted({ dataDir }: Installation, wanted: number): Promise<number> {
  const limit = performance.now() + COUNT_LIMIT_MS
  for (;;) {
    const count = await numberOfEvents(dataDir, KINDS)
    if (count >= wanted || performance.now() > limit) return count
    await sleep(500)
  }
}

async function visit(load: VisitLoad): Promise<VisitReport> {
  const child = start(process.execPath, [PROGRAM], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const answer = once(child, 'message')
  child.send(load)
  const [report] = (await answer) as [VisitReport]
  child.disconnect()
  return report
}

/** Takes all mail and reads the URLs in it. */
interface Mailbox {
  readonly port: number
  readonly clicks: string[]
  readonly pixels: string[]
  clear(): void
  stop(): void
}

async function openMailbox(): Promise<Mailbox> {
  const clicks: string[] = []
  const pixels: string[] = []
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    onData(stream, _, taken) {
      const pieces: Buffer[] = []
      stream.on('data', (piece: Buffer) => pieces.push(piece))
      stream.on('end', () => {
        const text = decodeQuotedPrintable(Buffer.concat(pieces)).toString('latin1')
        const path = (name: string) => new RegExp(`https?://[^"/\\s]+(/${name}/[\\w.-]+)"`).exec(text)?.[1]
        const [click, pixel] = [path('c'), path('o')]
        // Mail that goes on beside is none of what is visited.
        if (click !== undefined && pixel !== undefined && text.includes('Subject: News')) {
          clicks.push(click)
          pixels.push(pixel)
        }
        taken(null)
      })
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const address = server.server.address()
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    clicks,
    pixels,
    clear() {
      clicks.length = 0
      pixels.length = 0
    },
    stop() {
      server.close()
    },
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
