/**
 * How fast the REST API answers with much behind it: a million messages, and ninety days of what became of them.
 *
 * Called by `main.ts`. Each row asks the same question again and again, one client at a time unless the row says otherwise,
 * and stands beside the limit that its median is to keep. Nothing is delivered meanwhile (see `accept.ts`).
 */
import { join } from 'node:path'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { newestSeq } from '../../src/events/store.js'
import { systemClock } from '../../src/world/time/clock.js'
import { peakText } from './accept.js'
import { sendLoad, type Load, type LoadResult } from '../peers/api-load.js'
import { fillHistory, type Filled } from '../fill/fill-history.js'
import { DAY_MS } from './history.js'
import { batchRequest, recipient, sendRequest } from '../fill/letters.js'
import { percentile, short } from '../numbers.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { openSilentServer } from '../peers/sinks.js'
import { printTable } from '../table.js'

export interface ApiOptions {
  readonly messages: number
  /** Per row. */
  readonly limitMs: number
  readonly profile: boolean
}

interface Row {
  readonly name: string
  /** Of the median, ms. */
  readonly wantedMs: number
  readonly connections?: number
  readonly load: Pick<Load, 'path' | 'body'>
}

const DOMAINS = 20
const BATCH = 1_000
const MOST_REQUESTS = 2_000
/** Of the same question, so that its code is compiled and its pages are read; what is measured comes after. */
const WARM_UP_REQUESTS = 5
/** And of single sends, before all. */
const WARM_UP_SENDS = 300
const PAGE_WANTED_MS = 20

export async function measureApi(original: Installation, options: ApiOptions): Promise<void> {
  const installation = await copyInstallation(original, 'api')
  const startedAt = performance.now()
  const filled = await fillHistory(installation, options.messages)
  const fillSeconds = (performance.now() - startedAt) / 1_000
  const silent = await openSilentServer()
  const outgoing = { port: silent.port, connections: 1, connectionsPerDestination: 1 }
  const server = await serve(installation, outgoing, options.profile ? 'api' : undefined)
  const target = { port: server.port, key: installation.key, connections: 1, limitMs: options.limitMs }
  await sendLoad({ ...target, ...singleSends(0), requests: WARM_UP_SENDS })
  await checkConsumers(installation)
  const rows: string[][] = []
  for (const row of [...readRows(filled), ...sendRows()]) {
    const load = { ...target, ...row.load, connections: row.connections ?? 1 }
    await sendLoad({ ...load, requests: WARM_UP_REQUESTS })
    rows.push(cells(row, await sendLoad({ ...load, requests: MOST_REQUESTS })))
  }
  const peak = peakText(server)
  await server.stop()
  await silent.stop()
  printTable(
    `REST API with ${options.messages} messages, ${HISTORY_TEXT}`,
    [['', 'clients', 'requests', 'median ms', 'p99 ms', 'limit ms', ''], ...rows],
    [
      `Filled in ${fillSeconds.toFixed(0)} s; seven of ten messages are the asking workspace's. Pages are of 100 unless they say otherwise.`,
      `Each client has one connection and waits for its answer; at most ${options.limitMs / 1_000} s per row; server's peak memory ${peak}.`,
    ],
  )
}

const HISTORY_TEXT = 'over ninety days, with their attempts, events, bounces and counters'

function cells(row: Row, { requests, latencies }: LoadResult): string[] {
  const median = percentile(latencies, 0.5)
  return [
    row.name,
    `${row.connections ?? 1}`,
    `${requests}`,
    short(median),
    short(percentile(latencies, 0.99)),
    `${row.wantedMs}`,
    median > row.wantedMs ? 'over' : '',
  ]
}

function readRows({ history, campaignId, sample }: Filled): Row[] {
  const one = (number: number) => sample[number % sample.length]!
  const page = (
    name: string,
    path: string | ((number: number) => string),
    wantedMs = PAGE_WANTED_MS,
  ): Row => ({
    name: `GET ${name}`,
    wantedMs,
    load: { path: typeof path === 'string' ? () => path : path },
  })
  const at = (daysAgo: number) => new Date(history.until - daysAgo * DAY_MS).toISOString()
  const week = `since=${at(37)}&until=${at(30)}`
  const same = (path: string) => page(path, path)
  const deep = Math.floor(history.messages / 2)
  return [
    page('/email/:id/status', number => `/email/${one(number).id}/status`, 2),
    page('/email/:id', number => `/email/${one(number).id}`, 2),
    ...['1d', '7d', '30d', '90d'].map(period => same(`/analytics?period=${period}`)),
    same('/email'),
    page('/email?to=', number => `/email?to=${one(number).recipient}`),
    page('/email?since=&until= (a week)', `/email?${week}`),
    page('/email?campaign_id=', `/email?campaign_id=${campaignId}`),
    page('/email?campaign_id=&status=opened', `/email?campaign_id=${campaignId}&status=opened`),
    ...['sent', 'delivered', 'opened', 'bounced', 'scheduled', 'failed'].map(status =>
      same(`/email?status=${status}`),
    ),
    page('/email?status=delivered of a week', `/email?status=delivered&${week}`),
    page('/email?status=opened of a week', `/email?status=opened&${week}`),
    page('/email?limit=1000', '/email?limit=1000', 50),
    same('/email?offset=10000'),
    page(`/email?offset=${deep}`, `/email?offset=${deep}`, 100),
    same('/bounces'),
    same('/bounces?type=transient'),
    page('/bounces?campaign_id=', `/bounces?campaign_id=${campaignId}`),
    page('/bounces?since=&until= (a week)', `/bounces?${week}`),
    same('/conversions'),
    same('/suppressions'),
    same('/suppressions?reason=unsubscribe'),
    same('/suppressions?reason=complaint'),
    same('/suppressions?scope=all'),
    page('/suppressions?email=', '/suppressions?email=gone7@d7.example'),
    same('/activity'),
    same('/activity?action=domain.added'),
  ]
}

function singleSends(first: number): Pick<Load, 'body'> {
  return { body: number => sendRequest(first + number, recipient(first + number, DOMAINS)) }
}

function sendRows(): Row[] {
  return [
    { name: 'POST /email/send, 10 KB of HTML', wantedMs: 5, load: singleSends(0) },
    { name: 'POST /email/send, 10 KB of HTML', wantedMs: 15, connections: 8, load: singleSends(0) },
    {
      name: `POST /email/batch, ${BATCH} of 1 KB`,
      wantedMs: 150,
      load: { path: () => '/email/batch', body: number => batchRequest(number, BATCH, DOMAINS) },
    },
  ]
}

/** A consumer that `fill-records.ts` does not know would read the whole event log beside what is measured. */
async function checkConsumers({ dataDir }: Installation): Promise<void> {
  const file = join(dataDir, 'postroad.db')
  const database = await openSqlite({ file, clock: systemClock, mayMigrate: false })
  try {
    const newest = await newestSeq(database.reader)
    const cursors = await database.reader.selectFrom('event_cursors').selectAll().execute()
    for (const { consumer, seq } of cursors)
      if (seq < newest / 2)
        throw new Error(
          `the consumer ${consumer} was not told by bench/fill/fill-records.ts where the log ends`,
        )
  } finally {
    await database[Symbol.asyncDispose]()
  }
}
