/**
 * SQL of the recent counters: what happened to mail in each minute, hour and day (UTC), per workspace and for all mail together.
 *
 * Written in the transaction of what is counted: deferrals with their attempts, everything else by the consumer `analytics`. Read by
 * `GET /live/history`, which therefore never counts messages. Sandboxes are counted separately and not for all mail.
 */
import { sql } from 'kysely'
import { dialectOf, type Queries } from '../db/database.js'
import { inPieces, statement, type Rows } from '../db/statement.js'
import type { MidnightShift } from '../world/time/zone-days.js'

export const RECENT_NAMES = [
  'accepted',
  'sent',
  'delivered',
  'deferred',
  'bounced',
  'complained',
  'opened',
  'clicked',
] as const
export type RecentName = (typeof RECENT_NAMES)[number]

/** Length of a span, and how long it is kept: twice what a chart shows, ms. Hours as long as days, to shift days to another time zone. */
export const SPANS = {
  minute: { ms: 60_000, keptMs: 3 * 3_600_000 },
  hour: { ms: 3_600_000, keptMs: 62 * 86_400_000 },
  day: { ms: 86_400_000, keptMs: 62 * 86_400_000 },
} as const
export type Span = keyof typeof SPANS
export const SPAN_NAMES = Object.keys(SPANS) as Span[]

/** Owner of the counters of all mail. */
export const ALL_MAIL = '*'

interface RecentCounterRow {
  workspace_id: string
  span: Span
  starts_at: number
  name: RecentName
  count: number
}

declare module '../db/tables.js' {
  interface Tables {
    recent_counters: RecentCounterRow
  }
}

export interface RecentCount {
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly name: RecentName
  /** When it happened, ms since epoch UTC. */
  readonly at: number
}

const addRows = statement(
  (_, { rows }: Rows) =>
    sql`insert into recent_counters (workspace_id, span, starts_at, name, count)
      values ${sql.join(rows.map(row => sql`(${sql.join(row)})`))}
      on conflict (workspace_id, span, starts_at, name) do update set count = recent_counters.count + excluded.count`,
)

/** Counts each of them once. */
export async function addRecent(db: Queries, counted: readonly RecentCount[]): Promise<void> {
  const counts = new Map<string, [string, Span, number, RecentName, number]>()
  for (const { workspaceId, isSandbox, name, at } of counted)
    for (const owner of isSandbox ? [workspaceId] : [workspaceId, ALL_MAIL])
      for (const span of SPAN_NAMES) {
        const startsAt = startOf(span, at)
        const key = `${owner} ${span} ${startsAt} ${name}`
        counts.set(key, [owner, span, startsAt, name, (counts.get(key)?.[4] ?? 0) + 1])
      }
  // Always in the same order, so that two transactions never wait for each other's rows.
  const rows = [...counts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
  for (const piece of inPieces(rows)) await addRows(db, { rows: piece })
}

/** Beginning of the span that contains the moment; both ms since epoch UTC. */
export function startOf(span: Span, at: number): number {
  const { ms } = SPANS[span]
  return Math.floor(at / ms) * ms
}

/** Spans without counts are omitted. @param workspaceId or `ALL_MAIL` @param from start of the first span */
export async function readRecent(
  db: Queries,
  workspaceId: string,
  span: Span,
  from: number,
): Promise<{ readonly startsAt: number; readonly name: RecentName; readonly count: number }[]> {
  const rows = await db
    .selectFrom('recent_counters')
    .select(['starts_at', 'name', 'count'])
    .where('workspace_id', '=', workspaceId)
    .where('span', '=', span)
    .where('starts_at', '>=', from)
    .execute()
  return rows.map(({ starts_at: startsAt, name, count }) => ({ startsAt, name, count }))
}

/**
 * Hours that begin between the midnights of UTC and of another time zone, by the shift's `at`. Hours of before they were kept as long as
 * days have none.
 */
export async function sumShifts(
  db: Queries,
  workspaceId: string,
  shifts: readonly MidnightShift[],
): Promise<ReadonlyMap<number, Partial<Record<RecentName, number>>>> {
  const list = JSON.stringify(shifts.map(({ at, from, to }) => [at, from, to]))
  const all =
    dialectOf(db) === 'sqlite'
      ? sql`json_each(${list}) as shifts`
      : sql`jsonb_array_elements(cast(${list} as jsonb)) as shifts (value)`
  const part = (index: number) => sql`cast(shifts.value ->> ${sql.lit(index)} as bigint)`
  // A cross join, so that SQLite reads the index once for each shift.
  const { rows } = await sql<{ at: number; name: RecentName; count: number }>`
    select ${part(0)} as at, counters.name as name, cast(sum(counters.count) as bigint) as count
    from ${all} cross join recent_counters as counters
    where counters.workspace_id = ${workspaceId} and counters.span = 'hour'
      and counters.starts_at >= ${part(1)} and counters.starts_at < ${part(2)}
    group by 1, 2`.execute(db)
  const sums = new Map<number, Partial<Record<RecentName, number>>>()
  for (const { at, name, count } of rows) sums.set(at, { ...sums.get(at), [name]: count })
  return sums
}

/** @returns how many, at most `limit` */
export async function deleteRecentBefore(
  db: Queries,
  span: Span,
  before: number,
  limit: number,
): Promise<number> {
  const result = await sql`
    delete from recent_counters where (workspace_id, span, starts_at, name) in (
      select workspace_id, span, starts_at, name from recent_counters
      where span = ${span} and starts_at < ${before} order by starts_at limit ${limit}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}
