/** Metrics of message intake: volume, latency and connections. Never throws. */
import { Counter, Gauge, Histogram } from 'prom-client'
import type { OnAnswer } from '../http/app.js'
import type { SmtpCounts } from '../smtp/service.js'
import type { Metrics } from './metrics.js'

export type SmtpListener = 'submission' | 'inbound'
type Way = 'api' | SmtpListener

/** The routes that send mail; only these count as acceptance. */
const SENDS: ReadonlySet<string | undefined> = new Set(['POST /email/send', 'POST /email/batch'])
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export interface IntakeMetrics {
  readonly onAnswer: OnAnswer
  /** @returns a callback for each message the listener accepts */
  readonly onAccepted: (listener: SmtpListener) => (ms: number) => void
  /** Call once the listeners are open. */
  follow(connections: ConnectionCounts): void
}

/** Read at each scrape. */
export interface ConnectionCounts {
  readonly smtp: Readonly<Record<SmtpListener, () => SmtpCounts>>
  readonly http: () => number
  readonly deliveries: () => number
}

export function intakeMetrics(metrics: Metrics): IntakeMetrics {
  const registers = [metrics.registry]
  const seconds = new Histogram({
    name: 'postroad_acceptance_seconds',
    help: 'Time from the end of a message or request to the reply that it is stored, by way of submission.',
    labelNames: ['way'] as const,
    buckets: BUCKETS,
    registers,
  })
  const requests = new Counter({
    name: 'postroad_http_requests_total',
    help: 'HTTP responses of the API and the public pages, by status class.',
    labelNames: ['status'] as const,
    registers,
  })
  for (const way of ['api', 'submission', 'inbound'] satisfies Way[]) seconds.zero({ way })
  for (const status of ['2xx', '3xx', '4xx', '5xx']) requests.inc({ status }, 0)
  return {
    onAnswer(route, status, ms) {
      requests.inc({ status: `${Math.floor(status / 100)}xx` })
      if (status < 300 && SENDS.has(route)) seconds.observe({ way: 'api' }, ms / 1_000)
    },
    onAccepted: way => ms => seconds.observe({ way }, ms / 1_000),
    follow: counts => followConnections(metrics, counts),
  }
}

function followConnections(metrics: Metrics, { smtp, http, deliveries }: ConnectionCounts): void {
  const registers = [metrics.registry]
  const labelNames = ['listener'] as const
  const sessions = new Gauge({
    name: 'postroad_smtp_sessions',
    help: 'Open SMTP sessions of clients.',
    labelNames,
    registers,
  })
  const opened = new Counter({
    name: 'postroad_smtp_connections_total',
    help: 'SMTP connections accepted.',
    labelNames,
    registers,
  })
  const refused = new Counter({
    name: 'postroad_smtp_connections_refused_total',
    help: 'SMTP connections refused because a limit was reached.',
    labelNames,
    registers,
  })
  const httpConnections = new Gauge({
    name: 'postroad_http_connections',
    help: 'Open HTTP connections of clients.',
    registers,
  })
  const activeDeliveries = new Gauge({
    name: 'postroad_deliveries_active',
    help: 'Deliveries in progress; each uses one connection.',
    registers,
  })
  /** As of the previous scrape. */
  const previous: Record<SmtpListener, SmtpCounts> = { submission: NONE, inbound: NONE }
  metrics.addSource('connections', () => {
    for (const listener of ['submission', 'inbound'] as const) {
      const counts = smtp[listener]()
      sessions.set({ listener }, counts.sessions)
      opened.inc({ listener }, counts.opened - previous[listener].opened)
      refused.inc({ listener }, counts.rejected - previous[listener].rejected)
      previous[listener] = counts
    }
    httpConnections.set(http())
    activeDeliveries.set(deliveries())
  })
}

const NONE: SmtpCounts = { sessions: 0, opened: 0, rejected: 0 }
