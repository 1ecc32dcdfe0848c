/**
 * Bounces while hostile reports pour in: how long one with a valid token waits until it has taken effect.
 *
 * Called by `main.ts`. Clients with an address each send reports that unpack to millions of nothings to `tlsrpt@` and
 * `dmarc@`, as fast as they are let, while bounces come in at an even pace. Fails: throws where a bounce was refused or left no
 * record.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { join } from 'node:path'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'
import { peakText } from '../scenarios/accept.js'
import { RawClient, returnedMails, sendAll, untilRead, RETURN_PATH_DOMAIN } from '../scenarios/bounces.js'
import { fillQueue } from '../fill/fill-queue.js'
import { median, percentile, short } from '../numbers.js'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'

export interface ReportFloodOptions {
  readonly bouncesPerSecond: number
  readonly seconds: number
}

/** Hostile clients, each at an address of its own. */
const CLIENTS = 8
const DUE_IN_MS = 86_400_000
const SETTLED_MS = 7_000

const HEAD =
  '<feedback><report_metadata><org_name>x</org_name><report_id>1</report_id></report_metadata><policy_published>' +
  '<domain>bench.example</domain></policy_published>'
/** Each of some KB packed. */
const HOSTILE: readonly Buffer[] = [
  gzipSync(`{"report-id":"1","policies":[${'{},'.repeat(3_000_000)}{}]}`),
  gzipSync(`${HEAD}<a><![CDATA[${']'.repeat(9_000_000)}]]></a></feedback>`),
  gzipSync(`${HEAD}${'<a></a>'.repeat(490_000)}</feedback>`),
  gzipSync(`${HEAD}${'<record/>'.repeat(490_000)}</feedback>`),
]

export async function measureBouncesAmongReports(
  original: Installation,
  { bouncesPerSecond, seconds }: ReportFloodOptions,
): Promise<void> {
  const installation = await copyInstallation(original, 'reports')
  const bounces = bouncesPerSecond * seconds
  await fillQueue(installation, {
    messages: bounces,
    domains: 10,
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
  // By then it has done what a start brings with it.
  await sleep(SETTLED_MS)
  const flood = { isOver: false, taken: 0, refused: 0 }
  const hostile = Array.from({ length: CLIENTS }, (_, client) => pour(server.inboundPort, client, flood))
  await sendAll(server.inboundPort, returned, bouncesPerSecond)
  flood.isOver = true
  await Promise.all(hostile)
  await untilRead(installation, bounces)
  const peak = peakText(server)
  await server.stop()
  const waits = await readingTimes(installation)
  printTable(
    `Bounces: ${bouncesPerSecond} a second for ${seconds} s, while ${CLIENTS} clients pour in hostile reports`,
    [
      ['', 'bounces', 'median ms', 'p99 ms', 'most ms'],
      [
        'from 250 to its effect',
        `${waits.length}`,
        short(median(waits)),
        short(percentile(waits, 0.99)),
        short(Math.max(...waits)),
      ],
    ],
    [
      `${flood.taken} reports taken, ${flood.refused} refused; ` +
        `event loop delay p99 ${short(server.delays()?.p99Ms ?? NaN)} ms; peak memory ${peak}.`,
    ],
  )
}

/** One hostile client, which comes again wherever it is sent away. */
async function pour(
  port: number,
  client: number,
  flood: { readonly isOver: boolean; taken: number; refused: number },
): Promise<void> {
  for (let number = 0; !flood.isOver; number += 1) {
    // An address for every few mails: more than the budget of one.
    const address = `127.1.${client}.${1 + (Math.floor(number / 50) % 250)}`
    const report = HOSTILE[number % HOSTILE.length] ?? Buffer.alloc(0)
    const role = number % 2 === 0 ? 'tlsrpt' : 'dmarc'
    const raw = new RawClient(port, address)
    try {
      await raw.expect('220')
      await raw.say('EHLO flood.example\r\n', '250')
      await raw.say(`MAIL FROM:<>\r\nRCPT TO:<${role}@${RETURN_PATH_DOMAIN}>\r\nDATA\r\n`, '354')
      await raw.say(mailWith(report), '250')
      flood.taken += 1
    } catch {
      flood.refused += 1
    } finally {
      raw.close()
    }
  }
}

/** A report ten times over. */
function mailWith(report: Buffer): string {
  const part = `--b\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${report.toString('base64')}\r\n`
  return `Content-Type: multipart/mixed; boundary=b\r\n\r\n${part.repeat(10)}--b--\r\n.\r\n`
}

/** Of all bounces, ms. */
async function readingTimes({ dataDir }: Installation): Promise<number[]> {
  const file = join(dataDir, 'postroad.db')
  const database = await openSqlite({ file, clock: systemClock, mayMigrate: false })
  try {
    const rows = await database.reader
      .selectFrom('inbound_mails')
      .select(['received_at', 'processed_at'])
      .where('is_signed', '=', 1)
      .execute()
    return rows.map(row => (row.processed_at ?? Infinity) - row.received_at)
  } finally {
    await database[Symbol.asyncDispose]()
  }
}
