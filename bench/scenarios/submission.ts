/**
 * SMTP submission: how fast mail is accepted durably, and how fast it goes through, from SMTP in to SMTP out.
 *
 * Called by `main.ts`. The client is Postfix's smtp-source, which sends without authentication from a trusted network; the
 * same client straight into smtp-sink is the measure of what it and the machine can do at all. Fails: throws where a
 * message was not accepted or not delivered.
 */
import { peakText } from './accept.js'
import { run, start } from '../server/children.js'
import { numberOfDelivered, untilQueueIsEmpty } from '../server/queue-watch.js'
import { short } from '../numbers.js'
import {
  copyInstallation,
  SENDER,
  serve,
  type Installation,
  type Outgoing,
} from '../server/server-process.js'
import { openSilentServer, openSink, type Sink } from '../peers/sinks.js'
import { printTable } from '../table.js'

export interface SubmissionOptions {
  /** Per row. */
  readonly messages: number
  /** RSA-2048 signatures per second of this machine, all cores. */
  readonly signaturesPerSecond: number
  readonly profile: boolean
}

export const POSTFIX_SOURCE = '/usr/sbin/smtp-source'
const SESSIONS = 20
const OCTETS = 10_000
/** As a busy relay to one site would be set up. */
const RELAY = { connections: 500, connectionsPerDestination: 40 }
const HELD = { connections: 1, connectionsPerDestination: 1 }

export async function measureSubmission(original: Installation, options: SubmissionOptions): Promise<void> {
  await measureAcceptance(original, options)
  await measureThrough(original, options)
}

async function measureAcceptance(original: Installation, options: SubmissionOptions): Promise<void> {
  const rows: string[][] = []
  for (const isReused of [false, true]) {
    const sink = await openSink()
    const bare = options.messages / (await source(sink.port, options.messages, isReused))
    await sink.stop()
    const silent = await openSilentServer()
    const name = `submission-${isReused ? 'reused' : 'new'}-connections`
    const installation = await copyInstallation(original, name)
    const outgoing = { ...HELD, port: silent.port, reportsDelays: true }
    const server = await serve(installation, outgoing, options.profile ? name : undefined)
    await source(server.submissionPort, warmUp(options), isReused)
    const cpuBefore = server.cpuSeconds()
    const seconds = await source(server.submissionPort, options.messages, isReused)
    const cpuSeconds = server.cpuSeconds() - cpuBefore
    const peak = peakText(server)
    await server.stop()
    await silent.stop()
    const accepted = options.messages / seconds
    rows.push([
      isReused ? 'kept' : 'one a message',
      short(bare),
      short(accepted),
      `${Math.round((100 * accepted) / bare)} %`,
      short((cpuSeconds * 1_000) / options.messages),
      delayText(server.delays()),
      peak,
    ])
  }
  printTable(
    `SMTP submission: messages of 10 KB accepted durably, ${SESSIONS} sessions, delivery held`,
    [
      [
        'connections',
        'smtp-sink/s',
        'accepted/s',
        'share',
        'CPU s/1,000',
        'event loop delay, 99 % / most',
        'peak memory',
      ],
      ...rows,
    ],
    [
      "Client: Postfix's smtp-source; the first column of figures is the same client straight into smtp-sink.",
      WARM_UP,
    ],
  )
}

const WARM_UP =
  'Before each row half as many messages go through that are not counted: a server runs for weeks.'

function warmUp({ messages }: SubmissionOptions): number {
  return messages / 2
}

interface Through {
  readonly workers: number
  readonly domains: number
  /** Leaves the Ed25519 signature out. */
  readonly isRsaAlone: boolean
}

const THROUGH: readonly Through[] = [
  { workers: 2, domains: 1, isRsaAlone: false },
  { workers: 2, domains: 1, isRsaAlone: true },
  { workers: 2, domains: 20, isRsaAlone: false },
  { workers: 2, domains: 20, isRsaAlone: true },
  { workers: 1, domains: 1, isRsaAlone: false },
  { workers: 1, domains: 1, isRsaAlone: true },
]

async function measureThrough(original: Installation, options: SubmissionOptions): Promise<void> {
  const sink = await openSink()
  const rows: string[][] = []
  for (const row of THROUGH) rows.push(await measureRow(original, sink, row, options))
  await sink.stop()
  printTable(
    'Relay from SMTP submission in to SMTP out: messages of 10 KB, from the first connection to the last one delivered',
    [
      ['signatures', 'domains', 'threads', 'delivered/s', 'of RSA limit', 'CPU s/1,000', 'peak memory'],
      ...rows,
    ],
    [
      `${SESSIONS} sessions of smtp-source, connections kept; delivered to ${sink.name}; mta.connections = ` +
        `${RELAY.connections}, connections_per_destination = ${RELAY.connectionsPerDestination}.`,
      WARM_UP,
      `The RSA limit is this machine's ${options.signaturesPerSecond} signatures/s with all cores doing nothing else.`,
    ],
  )
}

async function measureRow(
  original: Installation,
  sink: Sink,
  { workers, domains, isRsaAlone }: Through,
  options: SubmissionOptions,
): Promise<string[]> {
  const { messages, signaturesPerSecond, profile } = options
  const name = `through-${domains}-domains-${workers}-threads${isRsaAlone ? '-rsa' : ''}`
  const installation = await copyInstallation(original, name)
  if (isRsaAlone) await installation.dropEd25519()
  const outgoing: Outgoing = { ...RELAY, port: sink.port, workers }
  const server = await serve(installation, outgoing, profile ? name : undefined)
  const relay = async (count: number): Promise<void> => {
    await Promise.all(
      Array.from({ length: domains }, (_, index) =>
        source(server.submissionPort, count / domains, true, SESSIONS / domains, `ann@d${index}.example`),
      ),
    )
    await untilQueueIsEmpty(installation.dataDir)
  }
  await relay(warmUp(options))
  const cpuBefore = server.cpuSeconds()
  const startedAt = performance.now()
  await relay(messages)
  const seconds = (performance.now() - startedAt) / 1_000
  const cpuSeconds = server.cpuSeconds() - cpuBefore
  const peak = peakText(server)
  const delivered = await numberOfDelivered(installation.dataDir)
  await server.stop()
  const expected = messages + warmUp(options)
  if (delivered !== expected) throw new Error(`${delivered} of ${expected} messages were delivered`)
  return [
    isRsaAlone ? 'RSA' : 'RSA + Ed25519',
    `${domains}`,
    `${workers}`,
    short(messages / seconds),
    `${Math.round((100 * messages) / seconds / signaturesPerSecond)} %`,
    short((cpuSeconds * 1_000) / messages),
    peak,
  ]
}

/** @returns seconds until the last message was accepted */
async function source(
  port: number,
  messages: number,
  isReused: boolean,
  sessions = SESSIONS,
  recipient = 'ann@d0.example',
): Promise<number> {
  const startedAt = performance.now()
  const options = isReused ? ['-d'] : []
  const amount = ['-s', `${sessions}`, '-m', `${messages}`, '-l', `${OCTETS}`]
  const addresses = ['-f', SENDER, '-t', recipient, `inet:127.0.0.1:${port}`]
  await run(start(POSTFIX_SOURCE, [...options, ...amount, ...addresses]))
  return (performance.now() - startedAt) / 1_000
}

function delayText(delays: { readonly p99Ms: number; readonly mostMs: number } | undefined): string {
  return delays === undefined ? '-' : `${short(delays.p99Ms)} / ${short(delays.mostMs)} ms`
}
