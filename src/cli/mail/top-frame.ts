/** One frame of `postroad top`, as `--json` prints it and as lines of text. Pure. */
import type { QueueSites } from '../../queue/operator/queue-status-routes.js'
import type { Rates } from '../../queue/operator/queue-status.js'
import { table } from '../context.js'

type SitePace = QueueSites['sites'][number]

/** Attempts in the last minute. */
export interface Frame {
  /** ISO 8601. */
  readonly time: string
  /** Whether a server is running on the data folder. */
  readonly serving: boolean
  /** Why the server's in-memory state is missing; null if it is not. */
  readonly trouble: string | null
  /** Octets; null if the database is not a local file. */
  readonly database: {
    readonly octets: number
    readonly free_octets: number
    readonly log_octets: number
    readonly disk_free_octets: number
  } | null
  /** Deliveries in progress; null if the server did not answer. */
  readonly active: number | null
  readonly total: Rates & { readonly queued: number; readonly due: number; readonly held: number }
  /** Busy sites first; `active` and `window` are null if the server did not report them. */
  readonly sites: readonly (Rates & {
    readonly site: string
    readonly active: SitePace['active'] | null
    readonly window: SitePace['window'] | null
    readonly backoff_until: string | null
  })[]
  /** Most queued mail first. */
  readonly destinations: readonly (Rates & {
    readonly destination: string
    readonly site: string
    readonly queued: number
    readonly due: number
    readonly held: number
  })[]
}

const MAX_NAME_LENGTH = 48
const RATE_HEADS = ['DELIVERED/MIN', 'DEFERRED/MIN', 'BOUNCED/MIN']

export function frameLines({ time, trouble, database, active, total, sites, destinations }: Frame): string[] {
  return [
    `postroad top  ${time}${trouble === null ? '' : `  ${trouble}`}`,
    `${total.queued} queued, ${total.due} due, ${total.held} held; ${active ?? '-'} active; last minute: ` +
      `${total.delivered} delivered, ${total.deferred} deferred, ${total.bounced} bounced`,
    ...(database === null ? [] : [databaseLine(database)]),
    '',
    ...table(
      ['SITE', 'ACTIVE', 'WINDOW', 'BACKED OFF UNTIL', ...RATE_HEADS],
      sites.map(row => [clip(row.site), row.active, row.window, row.backoff_until, ...rateCells(row)]),
    ).split('\n'),
    '',
    ...table(
      ['DESTINATION', 'QUEUED', 'DUE', 'HELD', ...RATE_HEADS, 'SITE'],
      destinations.map(row => [
        clip(row.destination),
        row.queued,
        row.due,
        row.held,
        ...rateCells(row),
        clip(row.site),
      ]),
    ).split('\n'),
  ]
}

function databaseLine(now: NonNullable<Frame['database']>): string {
  return (
    `database: ${inUnits(now.octets)}, ${inUnits(now.free_octets)} of it unused; log ${inUnits(now.log_octets)}; ` +
    `${inUnits(now.disk_free_octets)} of disk free`
  )
}

function inUnits(octets: number): string {
  const [unit, size]: readonly [string, number] =
    octets >= 1e9 ? ['GB', 1e9] : octets >= 1e6 ? ['MB', 1e6] : ['KB', 1e3]
  return `${(octets / size).toFixed(1)} ${unit}`
}

function rateCells({ delivered, deferred, bounced }: Rates): number[] {
  return [delivered, deferred, bounced]
}

/** A site of many hosts is named after all of them, so long names are cut. */
function clip(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH - 1)}…`
}
