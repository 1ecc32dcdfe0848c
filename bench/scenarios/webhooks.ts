/**
 * Deliveries of webhooks: how soon good receivers hear of events among hanging and failing ones, and whether kill -9 loses any.
 *
 * Called by `main.ts`. 100 webhooks for one event, of which 10 hang and 10 answer 500, on one receiver in a process of its own; the events
 * are contacts that are created, 20 a second, which makes 2,000 deliveries a second. Fails: throws where a good receiver missed an event.
 */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { start } from '../server/children.js'
import { percentile, short } from '../numbers.js'
import type { ReceiverReport } from '../peers/webhook-receiver-program.js'
import { copyInstallation, serve, type Installation, type ServerProcess } from '../server/server-process.js'
import { printTable } from '../table.js'
import { peakText } from './accept.js'

export interface WebhookOptions {
  readonly seconds: number
  readonly profile: boolean
}

const EVENTS_PER_SECOND = 20
const RECEIVERS = { good: 80, hang: 10, fail: 10 } as const
const WANTED_MS = 2_000
/** For what is left after the last event. */
const SETTLE_LIMIT_MS = 60_000
const OUTGOING = { port: 9, connections: 1, connectionsPerDestination: 1, reportsDelays: true }

const PROGRAM = fileURLToPath(new URL('../peers/webhook-receiver-program.js', import.meta.url))

interface Receiver {
  readonly port: number
  report(): Promise<ReceiverReport>
  stop(): void
}

export async function measureWebhooks(original: Installation, options: WebhookOptions): Promise<void> {
  const steady = await measure(original, 'webhooks', options, false)
  const killed = await measure(original, 'webhooks-killed', { ...options, profile: false }, true)
  printTable(
    `Webhooks: ${EVENTS_PER_SECOND * 100} deliveries a second to 100 webhooks for ${options.seconds} s, of which 10 hang and 10 answer 500`,
    [
      [
        '',
        'told',
        'median ms',
        'p99 ms',
        'most ms',
        'limit ms',
        'again',
        'server CPU',
        'loop p99 ms',
        'peak memory',
      ],
      steady,
      killed,
    ],
    ['From the event to the receipt by the 80 good ones. Killed: SIGKILL on the way, and started again.'],
  )
}

async function measure(
  original: Installation,
  name: string,
  { seconds, profile }: WebhookOptions,
  isKilled: boolean,
): Promise<string[]> {
  const installation = await copyInstallation(original, name)
  const receiver = await openReceiver()
  let server = await serve(installation, OUTGOING, profile ? 'webhooks' : undefined)
  await subscribe(server, installation, receiver.port)
  const before = server.cpuSeconds()
  const events = EVENTS_PER_SECOND * seconds
  const made: string[] = []
  const startedAt = performance.now()
  for (let number = 0; number < events; number += 1) {
    const earlyMs = (number * 1_000) / EVENTS_PER_SECOND - (performance.now() - startedAt)
    if (earlyMs > 1) await sleep(earlyMs)
    if (isKilled && number === Math.floor(events / 2)) {
      process.kill(server.pid, 'SIGKILL')
      await sleep(500)
      server = await serve(installation, OUTGOING)
    }
    const email = `n${number}@bench.example`
    if (await post(server, installation, '/contacts', { email })) made.push(email)
  }
  const spentSeconds = (performance.now() - startedAt) / 1_000
  const cpu = (server.cpuSeconds() - (isKilled ? 0 : before)) / spentSeconds
  const report = await settled(receiver, made.length)
  const peak = peakText(server)
  await server.stop()
  receiver.stop()
  const { latencies } = report
  return [
    isKilled ? 'killed on the way' : 'undisturbed',
    `${latencies.length}`,
    short(percentile(latencies, 0.5)),
    short(percentile(latencies, 0.99)),
    short(Math.max(...latencies)),
    isKilled ? '-' : `${WANTED_MS}`,
    `${report.repetitions}`,
    isKilled ? '-' : `${(100 * cpu).toFixed(0)} %`,
    short(server.delays()?.p99Ms ?? NaN),
    peak,
  ]
}

async function subscribe(server: ServerProcess, installation: Installation, port: number): Promise<void> {
  for (const [kind, count] of Object.entries(RECEIVERS))
    for (let number = 0; number < count; number += 1) {
      const targetUrl = `http://127.0.0.1:${port}/${kind}/${number}`
      const wasMade = await post(server, installation, '/webhooks/triggers', {
        targetUrl,
        event: 'contact.created',
      })
      if (!wasMade) throw new Error('a webhook could not be made')
    }
}

/** Waits for all that was acknowledged. @throws Error naming what is missing */
async function settled(receiver: Receiver, events: number): Promise<ReceiverReport> {
  const latencies: number[] = []
  const limit = performance.now() + SETTLE_LIMIT_MS
  for (;;) {
    const report = await receiver.report()
    for (const one of report.latencies) latencies.push(one)
    const complete = Object.values(report.counts).filter(count => count >= events).length
    if (complete >= RECEIVERS.good) return { ...report, latencies }
    if (performance.now() > limit)
      throw new Error(`${RECEIVERS.good - complete} of the good receivers miss some of ${events} events`)
    await sleep(200)
  }
}

async function openReceiver(): Promise<Receiver> {
  const child = start(process.execPath, [PROGRAM], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const answer = async <T>(): Promise<T> => ((await once(child, 'message')) as [T])[0]
  const { port } = await answer<{ port: number }>()
  return {
    port,
    async report() {
      const report = answer<ReceiverReport>()
      child.send('report')
      return report
    },
    stop() {
      child.kill('SIGTERM')
    },
  }
}

/** @returns whether it was answered with 2xx */
async function post(
  { port }: ServerProcess,
  { key }: Installation,
  path: string,
  body: object,
): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
