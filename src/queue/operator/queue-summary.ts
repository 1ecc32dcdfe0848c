/** The queue by destination or site and by age of its messages. */
import { formatDuration } from '../../core/units.js'
import type { Database } from '../../db/database.js'
import type { LocateSite } from '../delivery-agent.js'
import { summarize, type Summary, type SummaryRow } from './queue-summary-store.js'
import { locateAll } from './queue-status.js'

/** Upper bounds of the age buckets; older messages are in one more. */
const AGE_BOUNDS_MS = [5, 10, 20, 40, 80, 160, 320, 640, 1280].map(minutes => minutes * 60_000)
export const AGES: readonly string[] = [...AGE_BOUNDS_MS.map(bound => formatDuration(bound)), 'older']

/** Destinations that a summary by site reads, those with most mail. */
export const MAX_SUMMED = 10_000

export type QueueCounts = Pick<SummaryRow, 'total' | 'held' | 'byAge'>

export interface SiteSummary extends QueueCounts {
  readonly site: string
  /** The number of its destinations that have mail. */
  readonly destinations: number
}

export interface SummaryRequest {
  readonly now: number
  readonly limit: number
  readonly workspaceId: string | undefined
}

export function summaryByDomain(
  { slowReader }: Pick<Database, 'slowReader'>,
  { now, limit, workspaceId }: SummaryRequest,
): Promise<Summary<SummaryRow>> {
  return summarize(slowReader, now, AGE_BOUNDS_MS, limit, workspaceId)
}

/** Most mail first. */
export async function summaryBySite(
  database: Pick<Database, 'slowReader'>,
  { limit, ...request }: SummaryRequest,
  locateSite: LocateSite,
): Promise<Summary<SiteSummary>> {
  const { rows, total, held } = await summaryByDomain(database, { ...request, limit: MAX_SUMMED })
  const destinations = rows.map(row => row.destination)
  const sites = sumBySite(rows, await locateAll(destinations, locateSite))
  return { rows: sites.slice(0, limit), found: sites.length, total, held }
}

function sumBySite(rows: readonly SummaryRow[], siteOf: ReadonlyMap<string, string>): SiteSummary[] {
  const sites = new Map<string, SiteSummary>()
  for (const { destination, total, held, byAge } of rows) {
    const site = siteOf.get(destination) ?? destination
    const sum = sites.get(site) ?? { site, destinations: 0, total: 0, held: 0, byAge: AGES.map(() => 0) }
    sites.set(site, {
      site,
      destinations: sum.destinations + 1,
      total: sum.total + total,
      held: sum.held + held,
      byAge: sum.byAge.map((count, index) => count + (byAge[index] ?? 0)),
    })
  }
  return [...sites.values()].sort((a, b) => b.total - a.total || (a.site < b.site ? -1 : 1))
}
