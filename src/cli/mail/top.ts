/**
 * `postroad top`: a live view of the queue, refreshed every second until interrupted.
 *
 * Queue and attempts are read from the database, site pacing from the running server. Never changes anything. Without a server that
 * answers, it says so and shows what is in the database.
 */
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import { siteLocator } from '../../appliance/open-delivery.js'
import { isoTime } from '../../core/moments.js'
import { ADMIN_BASE } from '../../http/route.js'
import type { QueueSites } from '../../queue/operator/queue-routes.js'
import { countByDestination, type DestinationCounts } from '../../queue/operator/queue-status-store.js'
import { addRates, locateAll, NO_RATES, type Rates, RecentRates } from '../../queue/operator/queue-status.js'
import { type CliContext, type CommonOptions, printResult, table, withAppliance } from '../context.js'
import { command } from '../options.js'
import { askServer } from '../running-server.js'

const REFRESH_MS = 1_000
/** Number of sites and destinations shown. */
const ROWS = 20
/** Destinations whose site is resolved for its rates: those with the most attempts in the last minute. */
const LOCATED = 500

export function topCommand(program: Command, context: CliContext): void {
  command(program, 'top', 'live view of queue and rates; exit with Ctrl-C')
    .option('--once', 'print one frame and exit, as --json does')
    .action(async (options: CommonOptions & { once?: boolean }) => {
      await withAppliance(context, options, async appliance => {
        const look = openView(appliance)
        if (!options.once && !options.json) return drawUntilClosed(context, look)
        const frame = await look()
        printResult(context, options, frame, () => frameLines(frame).join('\n'))
      })
    })
}

const HOME = '\x1b[H'
const TO_END_OF_LINE = '\x1b[K'
const TO_END_OF_SCREEN = '\x1b[J'
/** Size if standard output is not a terminal. */
const DEFAULT_SIZE = { rows: 50, columns: 200 }

/**
 * Until Ctrl-C or until standard output is closed. Each frame overwrites the last and is cut to the terminal, since a scrolled line would
 * leave the old frame behind.
 */
async function drawUntilClosed(
  { print, world, isOutputClosed }: CliContext,
  look: () => Promise<Frame>,
): Promise<void> {
  while (!isOutputClosed?.()) {
    const lines = frameLines(await look())
    const { rows, columns } = { ...DEFAULT_SIZE, ...terminalSize() }
    const shown = lines.slice(0, rows - 1).map(line => `${line.slice(0, columns)}${TO_END_OF_LINE}`)
    print(`${HOME}${shown.join('\n')}${TO_END_OF_SCREEN}`)
    await world.clock.sleep(REFRESH_MS)
  }
}

function terminalSize(): { rows: number; columns: number } | undefined {
  const { isTTY, rows, columns } = process.stdout
  return isTTY ? { rows, columns } : undefined
}

/** @returns a function that makes a frame; repeated calls read only what is new in the attempt log */
function openView(appliance: Appliance): () => Promise<Frame> {
  const { database, world } = appliance
  const locateSite = siteLocator(appliance)
  const lastMinute = new RecentRates(database.reader)
  return async () => {
    const now = world.clock.now()
    const counts = await countByDestination(database.reader, now)
    const rates = await lastMinute.poll(now)
    const largest = counts.slice(0, ROWS)
    const located = [...new Set([...largest.map(row => row.destination), ...busiest(rates)])]
    const siteOf = await locateAll(located, locateSite)
    const { serving, trouble, data } = await askServer(appliance, 'GET', `${ADMIN_BASE}/queue/sites`)
    const answer = data as QueueSites | undefined
    return {
      time: isoTime(now),
      serving,
      trouble,
      database: await databaseState(appliance),
      active: answer?.active ?? null,
      total: { ...addUp(counts), ...addRates(rates.values()) },
      sites: siteRows(answer, rates, siteOf).slice(0, ROWS),
      destinations: largest.map(row => ({
        ...row,
        site: siteOf.get(row.destination) ?? row.destination,
        ...(rates.get(row.destination) ?? NO_RATES),
      })),
    }
  }
}

async function databaseState({ config, database, world }: Appliance): Promise<Frame['database']> {
  const now = database.file?.size()
  if (!now) return null
  return {
    octets: now.octets,
    free_octets: now.freeOctets,
    log_octets: now.logOctets,
    disk_free_octets: await world.disk.freeSpace(config.dataDir),
  }
}

function busiest(rates: ReadonlyMap<string, Rates>): string[] {
  return [...rates]
    .sort(([, a], [, b]) => attemptsOf(b) - attemptsOf(a))
    .slice(0, LOCATED)
    .map(([destination]) => destination)
}

function attemptsOf({ delivered, deferred, bounced }: Rates): number {
  return delivered + deferred + bounced
}

function addUp(counts: readonly DestinationCounts[]) {
  const sum = (of: 'queued' | 'due' | 'held') => counts.reduce((total, row) => total + row[of], 0)
  return { queued: sum('queued'), due: sum('due'), held: sum('held') }
}

/** Sites reported by the server, and those with attempts in the last minute. */
function siteRows(
  answer: QueueSites | undefined,
  rates: ReadonlyMap<string, Rates>,
  siteOf: ReadonlyMap<string, string>,
): Frame['sites'] {
  const rows = new Map<string, Frame['sites'][number]>()
  for (const site of answer?.sites ?? []) rows.set(site.site, { ...site, ...NO_RATES })
  for (const [destination, ended] of rates) {
    const site = siteOf.get(destination)
    if (site === undefined) continue
    const row = rows.get(site) ?? { site, active: null, window: null, backoff_until: null, ...NO_RATES }
    rows.set(site, { ...row, ...addRates([row, ended]) })
  }
  return [...rows.values()].sort(
    (a, b) =>
      (b.active ?? 0) - (a.active ?? 0) ||
      Number(b.backoff_until !== null) - Number(a.backoff_until !== null) ||
      attemptsOf(b) - attemptsOf(a) ||
      (a.site < b.site ? -1 : 1),
  )
}

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

function frameLines({ time, trouble, database, active, total, sites, destinations }: Frame): string[] {
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
