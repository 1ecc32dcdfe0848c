/**
 * How fast the REST API accepts mail: from one client, from several, and with many recipients at once.
 *
 * Called by `main.ts`. Nothing is delivered meanwhile: the one connection there may be hangs on a server that never
 * greets. What is measured is acceptance with everything it promises, the commit on disk included.
 */
import { sendLoad, type LoadResult } from '../peers/api-load.js'
import { recipient, sendRequest } from '../fill/letters.js'
import { percentile, short } from '../numbers.js'
import { copyInstallation, serve, type Installation, type ServerProcess } from '../server/server-process.js'
import { openSilentServer } from '../peers/sinks.js'
import { printTable } from '../table.js'

export interface AcceptOptions {
  readonly limitMs: number
  readonly profile: boolean
}

interface Row {
  readonly connections: number
  /** In every request. */
  readonly recipients: number
}

const ROWS: readonly Row[] = [
  { connections: 1, recipients: 1 },
  { connections: 8, recipients: 1 },
  { connections: 32, recipients: 1 },
  { connections: 1, recipients: 100 },
]

/** That the recipients are spread over. */
const DOMAINS = 20
const MOST_REQUESTS = 20_000
/** Until the server's code is compiled, its figures are those of its first second. */
const WARM_UP_REQUESTS = 1_000

export async function measureAccept(original: Installation, options: AcceptOptions): Promise<void> {
  const installation = await copyInstallation(original, 'accept')
  const silent = await openSilentServer()
  const outgoing = { port: silent.port, connections: 1, connectionsPerDestination: 1 }
  const server = await serve(installation, outgoing, options.profile ? 'accept' : undefined)
  const load = { port: server.port, key: installation.key }
  const warmUp = { connections: 8, recipients: 1 }
  await sendLoad({ ...load, ...bodies(warmUp), requests: WARM_UP_REQUESTS, limitMs: options.limitMs })
  const rows: string[][] = []
  for (const row of ROWS) {
    const cpuBefore = server.cpuSeconds()
    const limits = { requests: MOST_REQUESTS, limitMs: options.limitMs }
    const result = await sendLoad({ ...load, ...bodies(row), ...limits })
    rows.push(cells(row, result, server.cpuSeconds() - cpuBefore))
  }
  const peak = peakText(server)
  await server.stop()
  await silent.stop()
  printTable(
    'Acceptance: POST /api/v1/email/send, 10 KB of HTML',
    [
      ['clients', 'recipients', 'requests/s', 'messages/s', 'median ms', 'p99 ms', 'CPU s/1,000 messages'],
      ...rows,
    ],
    [
      `Each client has one connection and waits for its answer; ${options.limitMs / 1_000} s per row; server's peak memory ${peak}.`,
      `Delivery is held off: mta.connections = 1, and that one waits for ${silent.name}.`,
    ],
  )
}

function bodies({ connections, recipients }: Row) {
  return {
    connections,
    body(number: number): Buffer {
      if (recipients === 1) return sendRequest(number, recipient(number, DOMAINS))
      return sendRequest(
        number,
        Array.from({ length: recipients }, (_, index) => recipient(number * recipients + index, DOMAINS)),
      )
    },
  }
}

function cells({ connections, recipients }: Row, result: LoadResult, cpuSeconds: number): string[] {
  const perSecond = (result.requests * 1_000) / result.durationMs
  return [
    `${connections}`,
    `${recipients}`,
    short(perSecond),
    short(perSecond * recipients),
    short(percentile(result.latencies, 0.5)),
    short(percentile(result.latencies, 0.99)),
    short((cpuSeconds * 1_000) / (result.requests * recipients)),
  ]
}

export function peakText(server: ServerProcess): string {
  return `${Math.round(server.peakMemory() / 2 ** 20)} MB`
}
