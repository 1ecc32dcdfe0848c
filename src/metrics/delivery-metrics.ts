/** What became of attempts, by destination: counts, and how long mail took. Observed once an outcome is on disk; fails never. */
import { Counter, Histogram } from 'prom-client'
import { addressDomain } from '../mail/address.js'
import type { LoggedAttempt, OnAttempt } from '../queue/delivery/record-outcomes.js'
import { classOf } from './destination-class.js'
import type { Metrics } from './metrics.js'

/** Seconds: from what is at once to what waited for its last retry. */
const DELIVERY_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400]
const ATTEMPT_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]

export function deliveryMetrics({ registry }: Metrics): OnAttempt {
  const registers = [registry]
  const attempts = new Counter({
    name: 'postroad_delivery_attempts_total',
    help: 'Attempts to deliver that ended, by destination and by what became of the message.',
    labelNames: ['destination', 'outcome'] as const,
    registers,
  })
  const delivered = new Histogram({
    name: 'postroad_delivery_seconds',
    help: 'From the moment a message was to leave until a server took it.',
    labelNames: ['destination'] as const,
    buckets: DELIVERY_BUCKETS,
    registers,
  })
  const durations = new Histogram({
    name: 'postroad_delivery_attempt_seconds',
    help: 'Duration of one attempt: routing, connecting, handing over.',
    labelNames: ['outcome'] as const,
    buckets: ATTEMPT_BUCKETS,
    registers,
  })
  const connections = new Counter({
    name: 'postroad_outgoing_connections_total',
    help: 'Hosts that attempts turned to, by whether a connection was made anew, was used again, or could not be had.',
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

/** A first attempt falls due when the mail is to leave, which may be long after it was accepted. */
function delaySeconds({ attempt, dueAt, acceptedAt }: LoggedAttempt['job'], finishedAt: number): number {
  const since = attempt === 1 ? Math.max(dueAt ?? acceptedAt, acceptedAt) : acceptedAt
  return Math.max(0, finishedAt - since) / 1_000
}
