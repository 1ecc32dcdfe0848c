/** One frame of `postroad top`: its shape as `--json` prints it, and the same as lines of text. Pure. */
import type { QueueSites } from '../../queue/operator/queue-status-routes.js'
import type { Rates } from '../../queue/operator/queue-status.js'
import { table } from '../context.js'

type SitePace = QueueSites['sites'][number]

/** Rates are attempts of the last minute. */
export interface Frame {
  /** ISO 8601, like all moments here. */
  readonly time: string
  /** Whether a server runs on the data folder. */
  readonly serving: boolean
  /** Why what the server holds in memory is not shown; null where it is. */
  readonly trouble: string | null
  /** Octets; null where the database is no file of ours. */
  readonly database: {
    readonly octets: number
    readonly free_octets: number
    readonly log_octets: number
    readonly disk_free_octets: number
  } | null
  /** Deliveries under way; null where the server could not be asked. */
  readonly active: number | null
  readonly total: Rates & { readonly queued: number; readonly due: number; readonly held: number }
  /** Busy ones first; `active` and `window` are null where the server did not tell. */
  readonly sites: readonly (Rates & {
    readonly site: string
    readonly active: SitePace['active'] | null
    readonly window: SitePace['window'] | null
    readonly backoff_until: string | null
  })[]
  /** Most mail first. */
  readonly destinations: readonly (Rates & {
    readonly destination: string
    readonly site: string
    readonly queued: number
    readonly due: number
    readonly held: number
  })[]
}

const LONGEST_NAME = 48
const RATE_HEADS = ['DELIVERED/MIN', 'DEFERRED/MIN', 'BOUNCED/MIN']

export function frameLines({ time, trouble, database, active, total, sites, destinations }: Frame): string[] {
  return [
    `postroad top  ${time}${trouble === null ? '' : `  ${trouble}`}`,
    `${total.queued} queued, ${total.due} due, ${total.held} held; ${active ?? '-'} under way; last minute: ` +
      `${total.delivered} delivered, ${total.deferred} deferred, ${total.bounced} bounced`,
    ...(database === null ? [] : [databaseLine(database)]),
    '',
    ...table(
      ['SITE', 'ACTIVE', 'WINDOW', 'RESTS UNTIL', ...RATE_HEADS],
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
    `${inUnits(now.disk_free_octets)} of disk left`
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

/** A site of many hosts is named by all of them. */
function clip(name: string): string {
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME - 1)}…`
}
