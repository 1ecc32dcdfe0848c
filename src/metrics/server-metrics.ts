/**
 * Metrics of the server itself: process, storage, event consumers, webhooks, jobs, certificates and health.
 *
 * Fails: as the sources do.
 */
import { readdir } from 'node:fs/promises'
import { Counter, Gauge, Histogram } from 'prom-client'
import type { OnCommitted } from '../db/database.js'
import { readPostgresSize } from '../db/postgres/database-size.js'
import type { Services } from '../db/services.js'
import { HEALTH_REASON_CODES, type HealthReasonCode } from '../health/health-reasons.js'
import type { JobState } from '../scheduler/job-store.js'
import type { Disk } from '../world/disk.js'
import type { Clock } from '../world/time/clock.js'
import { openLoopDelayMeter } from '../world/time/loop-delay.js'
import { cachedCount } from '../world/time/cached-count.js'
import type { Metrics } from './metrics.js'

const MICROSECONDS = 1e6

/** @returns stops the event loop meter */
export function observeProcess(metrics: Metrics, clock: Clock, version: string): () => void {
  const registers = [metrics.registry]
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers })
  new Gauge({
    name: 'postroad_build_info',
    help: 'Always 1; the labels give the running version.',
    labelNames: ['version', 'node'] as const,
    registers,
  }).set({ version, node: process.version }, 1)
  gauge('process_start_time_seconds', 'Start time of the process, Unix time.').set(
    clock.now() / 1_000 - process.uptime(),
  )
  const processor = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time used by the process, all threads.',
    registers,
  })
  const resident = gauge('process_resident_memory_bytes', 'Resident memory of the process.')
  const heap = gauge('nodejs_heap_size_used_bytes', 'Used heap of the main thread.')
  const files = gauge('process_open_fds', 'Open file descriptors.')
  const delays = new Gauge({
    name: 'postroad_event_loop_delay_seconds',
    help: 'Event loop delay of the main thread since the last scrape.',
    labelNames: ['quantile'] as const,
    registers,
  })
  const meter = openLoopDelayMeter()
  let counted = 0
  metrics.addSource('process', async () => {
    const { user, system } = process.cpuUsage()
    processor.inc((user + system - counted) / MICROSECONDS)
    counted = user + system
    const { rss, heapUsed } = process.memoryUsage()
    resident.set(rss)
    heap.set(heapUsed)
    const { p50, p99, max } = meter.take()
    delays.set({ quantile: '0.5' }, p50)
    delays.set({ quantile: '0.99' }, p99)
    delays.set({ quantile: '1' }, max)
    files.set((await readdir('/proc/self/fd')).length)
  })
  return () => meter.close()
}

const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

export function commitMetrics({ registry }: Metrics): OnCommitted {
  const registers = [registry]
  const seconds = new Histogram({
    name: 'postroad_database_commit_seconds',
    help: 'Duration of a write transaction, including the sync to disk.',
    buckets: BUCKETS,
    registers,
  })
  const works = new Counter({
    name: 'postroad_database_writes_total',
    help: 'Committed writes; several can share a transaction.',
    registers,
  })
  return (ms, count) => {
    seconds.observe(ms / 1_000)
    works.inc(count)
  }
}

export interface StorageSources extends Pick<Services, 'database' | 'clock'> {
  readonly disk: Disk
  readonly dataDir: string
}

export function observeStorage(metrics: Metrics, { database, disk, clock, dataDir }: StorageSources): void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [metrics.registry] })
  const free = gauge('postroad_disk_free_bytes', 'Free space on the disk of the data directory.')
  metrics.addSource('disk', async () => free.set(await disk.freeSpace(dataDir)))
  const { file } = database
  const size = gauge('postroad_database_bytes', 'Size of the database.')
  if (!file) {
    const octets = cachedCount(clock, () => readPostgresSize(database.reader))
    metrics.addSource('database', async () => size.set(await octets()))
    return
  }
  const unused = gauge('postroad_database_free_bytes', 'Unused space inside the database file.')
  const log = gauge('postroad_database_wal_bytes', 'Size of the write-ahead log.')
  metrics.addSource('database', () => {
    const now = file.size()
    size.set(now.octets)
    unused.set(now.freeOctets)
    log.set(now.logOctets)
  })
}

export interface ConsumerLag {
  readonly consumer: string
  readonly events: number
}

export interface ServerSources {
  readonly clock: Clock
  readonly consumerLags: () => Promise<readonly ConsumerLag[]>
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

export function observeServer(metrics: Metrics, sources: ServerSources): void {
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

function followConsumers(metrics: Metrics, { clock, ...sources }: ServerSources): void {
  const registers = [metrics.registry]
  const lag = new Gauge({
    name: 'postroad_consumer_lag_events',
    help: 'Events a consumer of the event log has not processed yet. Only on the node that runs the consumer.',
    labelNames: ['consumer'] as const,
    registers,
  })
  const aside = new Gauge({
    name: 'postroad_consumer_set_aside_events',
    help: 'Events a consumer could not process, set aside for the operator. Of the database: the same on every node.',
    registers,
  })
  const webhooks = new Gauge({
    name: 'postroad_webhook_lag_seconds',
    help: 'How long the oldest due webhook delivery is overdue; 0 if none is due. Of the database: the same on every node.',
    registers,
  })
  const setAside = cachedCount(clock, sources.countSetAside)
  const soonest = cachedCount(clock, sources.soonestWebhook)
  metrics.addSource('consumers', async () => {
    lag.reset()
    for (const { consumer, events } of await sources.consumerLags()) lag.set({ consumer }, events)
    aside.set(await setAside())
  })
  metrics.addSource('webhooks', async () => {
    const now = clock.now()
    const dueAt = (await soonest()) ?? now
    webhooks.set(Math.max(0, now - dueAt) / 1_000)
  })
}

function followJobs(metrics: Metrics, { jobs }: ServerSources): void {
  const registers = [metrics.registry]
  const labelNames = ['job'] as const
  const success = new Gauge({
    name: 'postroad_job_last_success_timestamp_seconds',
    help: 'When the job last succeeded, Unix time; absent if unknown. Only on the node that runs the job.',
    labelNames,
    registers,
  })
  const failed = new Gauge({
    name: 'postroad_job_failed',
    help: '1 if the last completed run of the job failed, else 0. Only on the node that runs the job.',
    labelNames,
    registers,
  })
  const running = new Gauge({
    name: 'postroad_job_running',
    help: '1 while the job is running, else 0. Only on the node that runs the job.',
    labelNames,
    registers,
  })
  metrics.addSource('jobs', () => {
    for (const gauge of [running, failed, success]) gauge.reset()
    for (const { name: job, isRunning, endedAt, failedAt } of jobs()) {
      const hasFailed = failedAt !== null && failedAt === endedAt
      running.set({ job }, isRunning ? 1 : 0)
      failed.set({ job }, hasFailed ? 1 : 0)
      if (endedAt !== null && !hasFailed) success.set({ job }, endedAt / 1_000)
    }
  })
}
