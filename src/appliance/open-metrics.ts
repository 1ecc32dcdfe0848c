/**
 * Wires metrics and health to the parts of the appliance that report them.
 *
 * Part of the composition root. `openMeters` runs before everything that is counted, `observeAll` once all is open. Never throws.
 */
import { countFailingFeeds } from '../feeds/feed-store.js'
import { REPORTED_FAILURES } from '../feeds/run-feed.js'
import type { OnCommitted } from '../db/database.js'
import type { RestoreHold } from '../accounts/restore-hold-store.js'
import type { Appliance } from './appliance.js'
import { VERSION } from '../core/version.js'
import { healthOf } from '../db/health.js'
import type { NodeStanding } from '../cluster/membership.js'
import { countSetAside } from '../events/set-aside-store.js'
import { openHealth, type JudgeHealth } from '../health/judge-health.js'
import type { HttpListeners } from './listeners/http-listeners.js'
import type { MailListeners } from './listeners/mail-listeners.js'
import { intakeMetrics, type IntakeMetrics } from '../metrics/intake-metrics.js'
import {
  commitMetrics,
  observeStorage,
  observeServer,
  observeProcess,
  type ConsumerLag,
} from '../metrics/server-metrics.js'
import { observeNode } from '../metrics/node-metrics.js'
import { addressDomain } from '../mail/address.js'
import { deliveryMetrics, observeQueue } from '../metrics/delivery-metrics.js'
import { DestinationRates } from '../metrics/destination-rates.js'
import { LiveCounters, type LiveSources } from '../metrics/live.js'
import { Metrics } from '../metrics/metrics.js'
import type { OnAttempt } from '../queue/delivery/record-outcomes.js'
import type { Certificates } from './open-certificates.js'
import type { QueueManager } from '../queue/queue-manager.js'
import type { JobState } from '../scheduler/job-store.js'
import { soonestDueOfAll } from '../webhooks/delivery/delivery-store.js'
import { countDisabledSince } from '../webhooks/subscriptions/subscription-store.js'
import { DnsWatch } from '../world/dns/dns-watch.js'
import type { World } from '../world/world.js'

export interface Meters {
  readonly metrics: Metrics
  /** The world, with DNS lookups counted. */
  readonly world: World
  readonly dns: DnsWatch
  readonly onCommitted: OnCommitted
  readonly onAttempt: OnAttempt
  readonly acceptance: IntakeMetrics
  readonly live: LiveCounters
  readonly rates: DestinationRates
  /** Figures of `GET /live`; undefined until `observeAll`. */
  readonly liveSources: () => LiveSources | undefined
  /** Called by `observeAll`. */
  readonly report: (sources: LiveSources) => void
}

export function openMeters(world: World): Meters {
  const metrics = new Metrics()
  const dns = new DnsWatch(world.clock)
  const live = new LiveCounters(world.clock)
  const rates = new DestinationRates(world.clock)
  const countAttempt = deliveryMetrics(metrics)
  let sources: LiveSources | undefined
  return {
    metrics,
    liveSources: () => sources,
    report: opened => {
      sources = opened
    },
    dns,
    world: {
      ...world,
      openResolver: (servers, timeoutMs, signal) =>
        dns.watched(world.openResolver(servers, timeoutMs, signal)),
    },
    onCommitted: commitMetrics(metrics),
    live,
    rates,
    onAttempt: attempt => {
      countAttempt(attempt)
      const kind = attempt.verdict.kind === 'gone' ? 'deferred' : attempt.verdict.kind
      live.count(kind)
      rates.count(addressDomain(attempt.job.recipient), kind === 'failed' ? 'bounced' : kind)
    },
    acceptance: intakeMetrics(metrics),
  }
}

export interface JudgedParts {
  readonly queue: QueueManager
  readonly certificates: Certificates
  readonly node: () => NodeStanding
  readonly consumerLags: () => Promise<readonly ConsumerLag[]>
}

/** Without a node for one of these, work waits. */
const WORKING_ROLES = ['mta', 'scheduler'] as const

/** How long a disabled webhook is reported. */
const NOTICE_MS = 7 * 24 * 60 * 60 * 1_000

export function judgeOf(
  { database, world: { clock } }: Appliance,
  { dns }: Meters,
  hold: RestoreHold,
  { queue, certificates, node, consumerLags }: JudgedParts,
): JudgeHealth {
  return openHealth({
    clock,
    check: healthOf(database, clock),
    countSetAside: () => countSetAside(database.reader),
    countDisabledWebhooks: () => countDisabledSince(database.reader, clock.now() - NOTICE_MS),
    countFailingFeeds: () => countFailingFeeds(database.reader, REPORTED_FAILURES),
    dnsTrouble: () => dns.trouble,
    standstillMs: () => queue.standstillMs,
    isHeld: () => hold.isHeld,
    missingRoles: () => WORKING_ROLES.filter(role => node().countTaking(role) === 0),
    consumerLag: async () => {
      const lags = await consumerLags()
      return lags.length === 0 ? undefined : Math.max(...lags.map(({ events }) => events))
    },
    certificateFault: () => certificates.standing().fault,
  })
}

export interface OpenParts {
  readonly appliance: Appliance
  readonly judgeHealth: JudgeHealth
  readonly queue: QueueManager
  /** Of the consumers that this node runs. */
  readonly consumerLags: () => Promise<readonly ConsumerLag[]>
  /** Those that this node runs. */
  readonly jobs: () => readonly JobState[]
  readonly node: () => NodeStanding
  readonly certificates: Certificates
  readonly mail: MailListeners
  readonly http: HttpListeners
}

/** @returns stops observing */
export function observeAll(meters: Meters, parts: OpenParts): () => void {
  const { metrics, acceptance } = meters
  const { appliance, queue, consumerLags, jobs, node, certificates, mail, http } = parts
  const { database, world, config } = appliance
  const { clock } = world
  observeStorage(metrics, { database, disk: world.disk, clock: world.clock, dataDir: config.dataDir })
  observeQueue(metrics, { database, clock })
  acceptance.follow({
    smtp: { submission: () => mail.counts.submission, inbound: () => mail.counts.inbound },
    http: () => http.connections,
    deliveries: () => queue.activeCount,
  })
  observeServer(metrics, {
    clock,
    consumerLags,
    countSetAside: () => countSetAside(database.reader),
    soonestWebhook: () => soonestDueOfAll(database.slowReader),
    jobs,
    certificates: () => [{ name: 'tls', ...certificates.standing() }],
    healthReasons: async () => (await parts.judgeHealth()).reasons,
  })
  observeNode(metrics, node)
  meters.report(liveSources(meters, parts))
  return observeProcess(metrics, clock, VERSION)
}

function liveSources({ live, rates }: Meters, { queue, consumerLags, mail, http }: OpenParts): LiveSources {
  return {
    counters: live,
    rates,
    connections: () => ({
      http: http.connections,
      submission: mail.counts.submission.sessions,
      inbound: mail.counts.inbound.sessions,
      deliveries: queue.activeCount,
    }),
    consumerLags,
    backingOffSites: () => queue.listSites().filter(({ backoffUntil }) => backoffUntil !== undefined).length,
  }
}
