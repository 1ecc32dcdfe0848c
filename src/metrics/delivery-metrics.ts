/**
 * Metrics of delivery: attempts by destination and outcome, delivery times, queue depth and age.
 *
 * Attempts are recorded after their outcome is on disk; the queue is counted in a reader thread between scrapes. Large providers are counted
 * by name and all other domains as `other`, which bounds the number of series. Fails: counting as the database does.
 */
import { Counter, Gauge, Histogram } from 'prom-client'
import type { Services } from '../db/services.js'
import { addressDomain } from '../mail/address.js'
import type { LoggedAttempt, OnAttempt } from '../queue/delivery/record-outcomes.js'
import { measureQueue, type QueueDepth, type Waiting } from '../queue/operator/queue-status-store.js'
import { cachedCount } from '../world/time/cached-count.js'
import type { Metrics } from './metrics.js'

/** Seconds; spans immediate delivery up to a last retry. */
const DELIVERY_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400]
const ATTEMPT_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]

export function deliveryMetrics({ registry }: Metrics): OnAttempt {
  const registers = [registry]
  const attempts = new Counter({
    name: 'postroad_delivery_attempts_total',
    help: 'Completed delivery attempts, by destination and outcome.',
    labelNames: ['destination', 'outcome'] as const,
    registers,
  })
  const delivered = new Histogram({
    name: 'postroad_delivery_seconds',
    help: 'Time from when a message was due until a server accepted it.',
    labelNames: ['destination'] as const,
    buckets: DELIVERY_BUCKETS,
    registers,
  })
  const durations = new Histogram({
    name: 'postroad_delivery_attempt_seconds',
    help: 'Duration of one delivery attempt: routing, connecting and the SMTP transaction.',
    labelNames: ['outcome'] as const,
    buckets: ATTEMPT_BUCKETS,
    registers,
  })
  const connections = new Counter({
    name: 'postroad_outgoing_connections_total',
    help: 'Hosts tried by delivery attempts, by whether the connection was new, reused or failed.',
    labelNames: ['connection'] as const,
    registers,
  })
  for (const connection of ['new', 'reused', 'failed']) connections.inc({ connection }, 0)
  for (const outcome of ['delivered', 'deferred', 'bounced', 'failed'])
    attempts.inc({ destination: 'other', outcome }, 0)
  return ({ job, startedAt, finishedAt, outcome, verdict }) => {
    const destination = classOf(addressDomain(job.recipient))
    const kind = verdict.kind === 'gone' ? 'deferred' : verdict.kind
    attempts.inc({ destination, outcome: kind })
    durations.observe({ outcome: kind }, Math.max(0, finishedAt - startedAt) / 1_000)
    if (kind === 'delivered') delivered.observe({ destination }, delaySeconds(job, finishedAt))
    for (const { stage, reused } of outcome.tried)
      connections.inc({ connection: reused ? 'reused' : stage === 'connect' ? 'failed' : 'new' })
  }
}

/** A first attempt counts from when the message was due, which for scheduled mail is long after it was accepted. */
function delaySeconds({ attempt, dueAt, acceptedAt }: LoggedAttempt['job'], finishedAt: number): number {
  const since = attempt === 1 ? Math.max(dueAt ?? acceptedAt, acceptedAt) : acceptedAt
  return Math.max(0, finishedAt - since) / 1_000
}

export type QueueParts = Pick<Services, 'database' | 'clock'>

export function observeQueue(metrics: Metrics, { database, clock }: QueueParts): void {
  const registers = [metrics.registry]
  const labelNames = ['destination'] as const
  const messages = new Gauge({
    name: 'postroad_queue_messages',
    help: 'Messages waiting for delivery, held ones included, by destination. Of the database: the same on every node.',
    labelNames,
    registers,
  })
  const oldest = new Gauge({
    name: 'postroad_queue_oldest_seconds',
    help: 'Age of the oldest waiting message, by destination; 0 if none waits. Of the database: the same on every node.',
    labelNames,
    registers,
  })
  const held = new Gauge({
    name: 'postroad_queue_held_messages',
    help: 'Held messages. Of the database: the same on every node.',
    registers,
  })
  const depth = cachedCount(clock, () => measureQueue(database.slowReader, NAMED_DOMAINS))
  metrics.addSource('queue', async () => {
    const counted = await depth()
    const now = clock.now()
    messages.reset()
    oldest.reset()
    for (const [destination, waiting] of byClass(counted)) {
      messages.set({ destination }, waiting.messages)
      const { oldestAt = now } = waiting
      oldest.set({ destination }, Math.max(0, now - oldestAt) / 1_000)
    }
    held.set(counted.held)
  })
}

function byClass({ named, others }: QueueDepth): ReadonlyMap<DestinationClass, Waiting> {
  const classes = new Map<DestinationClass, Waiting>([['other', others]])
  for (const [domain, waiting] of named) {
    const name = classOf(domain)
    const sum = classes.get(name) ?? { messages: 0, oldestAt: undefined }
    const oldestAt = Math.min(sum.oldestAt ?? Infinity, waiting.oldestAt ?? Infinity)
    classes.set(name, {
      messages: sum.messages + waiting.messages,
      oldestAt: oldestAt === Infinity ? undefined : oldestAt,
    })
  }
  return classes
}

/**
 * Groups recipient domains for metrics: large providers by name, all others as `other`, which bounds the number of series.
 *
 * Looks at the recipient domain only and never at DNS, so a company hosted by a large provider counts as `other`. Pure.
 */

const DOMAINS = {
  google: ['gmail.com', 'googlemail.com'],
  microsoft: [
    'outlook.com',
    'outlook.de',
    'outlook.es',
    'outlook.fr',
    'hotmail.com',
    'hotmail.co.uk',
    'hotmail.de',
    'hotmail.es',
    'hotmail.fr',
    'hotmail.it',
    'live.com',
    'live.co.uk',
    'live.de',
    'live.fr',
    'live.nl',
    'msn.com',
  ],
  yahoo: [
    'yahoo.com',
    'yahoo.co.in',
    'yahoo.co.uk',
    'yahoo.com.br',
    'yahoo.de',
    'yahoo.es',
    'yahoo.fr',
    'yahoo.it',
    'ymail.com',
    'rocketmail.com',
    'aol.com',
  ],
  apple: ['icloud.com', 'me.com', 'mac.com'],
  united_internet: ['gmx.at', 'gmx.ch', 'gmx.com', 'gmx.de', 'gmx.net', 'mail.com', 'web.de'],
  telekom: ['t-online.de', 'magenta.de'],
  proton: ['proton.me', 'protonmail.com', 'pm.me'],
  comcast: ['comcast.net'],
  orange: ['orange.fr', 'wanadoo.fr'],
  free: ['free.fr'],
  laposte: ['laposte.net'],
  libero: ['libero.it'],
  mail_ru: ['mail.ru', 'bk.ru', 'inbox.ru', 'list.ru'],
  yandex: ['yandex.ru', 'yandex.com', 'ya.ru'],
  qq: ['qq.com', 'foxmail.com'],
  netease: ['163.com', '126.com'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type DestinationClass = keyof typeof DOMAINS | 'other'

const CLASSES = new Map<string, DestinationClass>(
  (Object.keys(DOMAINS) as (keyof typeof DOMAINS)[]).flatMap(name =>
    DOMAINS[name].map(domain => [domain, name] as const),
  ),
)

/** All domains of named providers, for the queue's count by domain. */
export const NAMED_DOMAINS: readonly string[] = [...CLASSES.keys()]

/** @param domain as A-labels, lower case */
export function classOf(domain: string): DestinationClass {
  return CLASSES.get(domain) ?? 'other'
}
