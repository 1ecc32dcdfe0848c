/** Delivery attempts by destination and outcome, and delivery times. Recorded after the outcome is on disk. Fails: never. */
import { Counter, Histogram } from 'prom-client'
import { addressDomain } from '../mail/address.js'
import type { LoggedAttempt, OnAttempt } from '../queue/delivery/record-outcomes.js'
import { classOf } from './destination-class.js'
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
