/**
 * `postroad top`: a live view of the queue, refreshed every second until interrupted.
 *
 * Queue and attempts are read from the database, site pacing from the running server. Never changes anything. Without a server that
 * answers, it says so and shows what is in the database.
 */
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import { isoTime } from '../../core/moments.js'
import { addRates, RecentRates, NO_RATES, type Rates, locateAll } from '../../queue/operator/queue-status.js'
import { QUEUE_SITES_PATH, type QueueSites } from '../../queue/operator/queue-status-routes.js'
import { countByDestination, type DestinationCounts } from '../../queue/operator/queue-status-store.js'
import { siteLocator } from '../../appliance/open-delivery.js'
import { command, printResult, withAppliance, type CliContext, type CommonOptions } from '../context.js'
import { askServer } from '../running-server.js'
import { frameLines, type Frame } from './top-frame.js'

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
const USUAL_SIZE = { rows: 50, columns: 200 }

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
    const { rows, columns } = { ...USUAL_SIZE, ...terminalSize() }
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
    const { serving, trouble, data } = await askServer(appliance, 'GET', QUEUE_SITES_PATH)
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
