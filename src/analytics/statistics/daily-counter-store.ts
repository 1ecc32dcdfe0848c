/**
 * SQL of the daily counters of each workspace (UTC days).
 *
 * Incremented by the consumer `analytics` and read by `GET /analytics`; reports never count messages.
 */
import { sql, type Insertable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inPieces, statement } from '../../db/statement.js'

/** `sends` is missing: it is the sum of both kinds of sends. */
export const COUNTER_NAMES = [
  'accepted',
  'campaign_sends',
  'api_sends',
  'delivered',
  'opens',
  'clicks',
  'bounces',
  'complaints',
] as const

export type CounterName = (typeof COUNTER_NAMES)[number]

interface DailyCounterRow {
  workspace_id: string
  day: number
  name: CounterName
  count: number
}

declare module '../../db/tables.js' {
  interface Tables {
    daily_counters: DailyCounterRow
  }
}

export interface DailyCount {
  readonly workspaceId: string
  /** Midnight UTC, ms since epoch. */
  readonly day: number
  readonly name: CounterName
  readonly count: number
}

const addRows = statement((db, { rows }: { rows: readonly Insertable<DailyCounterRow>[] }) =>
  db
    .insertInto('daily_counters')
    .values(rows)
    .onConflict(conflict =>
      conflict
        .columns(['workspace_id', 'day', 'name'])
        .doUpdateSet(e => ({ count: e('daily_counters.count', '+', e.ref('excluded.count')) })),
    ),
)

/** Increments counters. @param counts each workspace, day and name at most once */
export async function addToCounters(db: Queries, counts: readonly DailyCount[]): Promise<void> {
  const rows = counts.map(({ workspaceId, day, name, count }) => ({
    workspace_id: workspaceId,
    day,
    name,
    count,
  }))
  for (const piece of inPieces(rows)) await addRows(db, { rows: piece })
}

/** Counts from a day on, inclusive; days and names without counts are omitted. */
export async function readCounters(
  db: Queries,
  workspaceId: string,
  firstDay: number,
): Promise<DailyCount[]> {
  const rows = await db
    .selectFrom('daily_counters')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('day', '>=', firstDay)
    .execute()
  return rows.map(row => ({ workspaceId: row.workspace_id, day: row.day, name: row.name, count: row.count }))
}

export async function deleteCountersBefore(db: Queries, day: number, limit: number): Promise<number> {
  const result = await sql`
    delete from daily_counters where (workspace_id, day, name) in (
      select workspace_id, day, name from daily_counters where day < ${day} order by day limit ${limit}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}
