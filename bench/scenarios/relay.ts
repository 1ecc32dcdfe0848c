/**
 * How fast mail goes through: accepted by the API, composed, signed, delivered to a server on loopback and settled.
 *
 * Called by `main.ts`. Measured from the first request to the last message being settled in the database, acceptance
 * included. Fails: throws where anything was not delivered.
 */
import { peakText } from './accept.js'
import { sendLoad } from '../peers/api-load.js'
import { recipient, sendRequest } from '../fill/letters.js'
import { short } from '../numbers.js'
import { numberOfDelivered, untilQueueIsEmpty } from '../server/queue-watch.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { openSink, type Sink } from '../peers/sinks.js'
import { printTable } from '../table.js'

export interface RelayOptions {
  /** Per row, at most. */
  readonly messages: number
  /** RSA-2048 signatures per second of this machine, all cores. */
  readonly signaturesPerSecond: number
  readonly profile: boolean
}

interface Row {
  readonly domains: number
  /** In every request. */
  readonly recipients: number
}

const ROWS: readonly Row[] = [
  { domains: 1, recipients: 1 },
  { domains: 20, recipients: 1 },
  { domains: 20, recipients: 100 },
]

const CONNECTIONS = { connections: 500, connectionsPerDestination: 40 }
/** Of the API: enough to keep the queue filled. */
const CLIENTS = 8
/** No request is begun after this time; the row then has fewer messages. */
const SENDING_LIMIT_MS = 15_000

export async function measureRelay(original: Installation, options: RelayOptions): Promise<void> {
  const sink = await openSink()
  const rows: string[][] = []
  for (const row of ROWS) rows.push(await measureRow(original, sink, row, options))
  await sink.stop()
  printTable(
    'Relay: messages of 10 KB, from the first request to the last one delivered',
    [
      [
        'domains',
        'recipients/request',
        'messages',
        'accepted/s',
        'delivered/s',
        'of RSA limit',
        'CPU s/1,000',
        'peak memory',
      ],
      ...rows,
    ],
    [
      `${CLIENTS} API clients; delivered to ${sink.name} on loopback; an RSA-2048 and an Ed25519 DKIM signature each; mta.connections = ` +
        `${CONNECTIONS.connections}, connections_per_destination = ${CONNECTIONS.connectionsPerDestination}.`,
      `The RSA limit is this machine's ${options.signaturesPerSecond} signatures/s with all cores doing nothing else.`,
    ],
  )
}

async function measureRow(
  original: Installation,
  sink: Sink,
  { domains, recipients }: Row,
  { messages, signaturesPerSecond, profile }: RelayOptions,
): Promise<string[]> {
  const name = `relay-${domains}-domains-${recipients}-recipients`
  const installation = await copyInstallation(original, name)
  const server = await serve(installation, { ...CONNECTIONS, port: sink.port }, profile ? name : undefined)
  const cpuBefore = server.cpuSeconds()
  const startedAt = performance.now()
  const accepted = await sendLoad({
    port: server.port,
    key: installation.key,
    connections: CLIENTS,
    requests: Math.ceil(messages / recipients),
    limitMs: SENDING_LIMIT_MS,
    body(number) {
      const to = Array.from({ length: recipients }, (_, index) =>
        recipient(number * recipients + index, domains),
      )
      return sendRequest(number, recipients === 1 ? to[0]! : to)
    },
  })
  const sent = accepted.requests * recipients
  await untilQueueIsEmpty(installation.dataDir)
  const seconds = (performance.now() - startedAt) / 1_000
  const cpuSeconds = server.cpuSeconds() - cpuBefore
  const peak = peakText(server)
  const delivered = await numberOfDelivered(installation.dataDir)
  await server.stop()
  if (delivered !== sent) throw new Error(`${delivered} of ${sent} messages were delivered`)
  return [
    `${domains}`,
    `${recipients}`,
    `${sent}`,
    short((sent * 1_000) / accepted.durationMs),
    short(sent / seconds),
    `${Math.round((100 * sent) / seconds / signaturesPerSecond)} %`,
    short((cpuSeconds * 1_000) / sent),
    peak,
  ]
}
