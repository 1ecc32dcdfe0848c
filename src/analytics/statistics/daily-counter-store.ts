/**
 * SQL of the counters: how often each thing happened in a workspace on a day (UTC).
 *
 * Written by the consumer `analytics` as things happen and read by `GET /analytics`; no report ever counts messages.
 */
import { sql, type Insertable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inPieces, statement } from '../../db/statement.js'

/** What is counted. `sends` is not: it is the sum of the two kinds of sends. */
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
  /** Midnight in UTC, ms since epoch. */
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

/** Adds to what was counted before. @param counts each workspace, day and name at most once */
export async function addToCounters(db: Queries, counts: readonly DailyCount[]): Promise<void> {
  const rows = counts.map(({ workspaceId, day, name, count }) => ({
    workspace_id: workspaceId,
    day,
    name,
    count,
  }))
  for (const piece of inPieces(rows)) await addRows(db, { rows: piece })
}

/** What was counted since a day, that day included; days and names without a count are left out. */
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

/** @returns how many, at most `limit` */
export async function deleteCountersBefore(db: Queries, day: number, limit: number): Promise<number> {
  const result = await sql`
    delete from daily_counters where (workspace_id, day, name) in (
      select workspace_id, day, name from daily_counters where day < ${day} order by day limit ${limit}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}
