/** Metrics of event consumers, webhooks, jobs, certificates and health. Fails: as their sources do. */
import { Gauge } from 'prom-client'
import type { HealthReasonCode } from '../health/health-reasons.js'
import { HEALTH_REASON_CODES } from '../health/health-reasons.js'
import type { JobState } from '../scheduler/job-store.js'
import type { Clock } from '../world/time/clock.js'
import { countedBeside } from './counted-beside.js'
import type { Metrics } from './metrics.js'

export interface FollowerSources {
  readonly clock: Clock
  readonly consumerLags: () => Promise<readonly { readonly consumer: string; readonly events: number }[]>
  readonly countSetAside: () => Promise<number>
  /** When the earliest pending webhook delivery is due, ms since epoch UTC. */
  readonly soonestWebhook: () => Promise<number | undefined>
  readonly jobs: () => readonly JobState[]
  readonly certificates: () => readonly CertificateState[]
  /** The reasons `/health` reports. */
  readonly healthReasons: () => Promise<readonly { readonly code: HealthReasonCode }[]>
}

export interface CertificateState {
  /** Its use, e.g. `smtp`. */
  readonly name: string
  /** Ms since epoch UTC. */
  readonly expiresAt: number
}

const DAY_MS = 86_400_000

export function followFollowers(metrics: Metrics, sources: FollowerSources): void {
  followConsumers(metrics, sources)
  followJobs(metrics, sources)
  const registers = [metrics.registry]
  const { clock } = sources
  const days = new Gauge({
    name: 'postroad_certificate_days_left',
    help: 'Days until the certificate in use expires; negative once expired.',
    labelNames: ['certificate'] as const,
    registers,
  })
  metrics.addSource('certificates', () => {
    days.reset()
    for (const { name, expiresAt } of sources.certificates())
      days.set({ certificate: name }, (expiresAt - clock.now()) / DAY_MS)
  })
  const reasons = new Gauge({
    name: 'postroad_health_reason',
    help: '1 while /health reports this reason, else 0.',
    labelNames: ['code'] as const,
    registers,
  })
  metrics.addSource('health', async () => {
    const present = new Set((await sources.healthReasons()).map(({ code }) => code))
    for (const code of HEALTH_REASON_CODES) reasons.set({ code }, present.has(code) ? 1 : 0)
  })
}

function followConsumers(metrics: Metrics, { clock, ...sources }: FollowerSources): void {
  const registers = [metrics.registry]
  const lag = new Gauge({
    name: 'postroad_consumer_lag_events',
    help: 'Events a consumer of the event log has not processed yet.',
    labelNames: ['consumer'] as const,
    registers,
  })
  const aside = new Gauge({
    name: 'postroad_consumer_set_aside_events',
    help: 'Events a consumer could not process, set aside for the operator.',
    registers,
  })
  const webhooks = new Gauge({
    name: 'postroad_webhook_lag_seconds',
    help: 'How long the oldest due webhook delivery is overdue; 0 if none is due.',
    registers,
  })
  const setAside = countedBeside(clock, sources.countSetAside)
  const soonest = countedBeside(clock, sources.soonestWebhook)
  metrics.addSource('consumers', async () => {
    for (const { consumer, events } of await sources.consumerLags()) lag.set({ consumer }, events)
    aside.set(await setAside())
  })
  metrics.addSource('webhooks', async () => {
    const now = clock.now()
    const dueAt = (await soonest()) ?? now
    webhooks.set(Math.max(0, now - dueAt) / 1_000)
  })
}

function followJobs(metrics: Metrics, { jobs }: FollowerSources): void {
  const registers = [metrics.registry]
  const labelNames = ['job'] as const
  const success = new Gauge({
    name: 'postroad_job_last_success_timestamp_seconds',
    help: 'When the job last succeeded, Unix time; absent if unknown.',
    labelNames,
    registers,
  })
  const failed = new Gauge({
    name: 'postroad_job_failed',
    help: '1 if the last completed run of the job failed, else 0.',
    labelNames,
    registers,
  })
  const running = new Gauge({
    name: 'postroad_job_running',
    help: '1 while the job is running, else 0.',
    labelNames,
    registers,
  })
  metrics.addSource('jobs', () => {
    for (const { name: job, isRunning, endedAt, failedAt } of jobs()) {
      const hasFailed = failedAt !== null && failedAt === endedAt
      running.set({ job }, isRunning ? 1 : 0)
      failed.set({ job }, hasFailed ? 1 : 0)
      if (endedAt !== null && !hasFailed) success.set({ job }, endedAt / 1_000)
    }
  })
}
