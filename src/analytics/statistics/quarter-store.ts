/**
 * SQL of the counters by quarter hour, from which reports in other time zones than UTC follow.
 *
 * The daily counters are of UTC days. A day of another zone differs from the UTC day of the same date by what happened between the midnights
 * of both, which is read here: offsets are multiples of a quarter hour. Days of before these counters existed, or that they were deleted of,
 * have none, and so are UTC days. Written with the daily counters, of which they are a part, in one transaction.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf, type Queries } from '../../db/database.js'
import { inPieces, statement, type Rows } from '../../db/statement.js'
import { DAY_MS, type MidnightShift } from '../../world/time/zone-days.js'
import { COUNTER_NAMES, type CounterName, type Dimension } from './counter-store.js'

export const QUARTER_MS = 900_000

/** The longest report, which may begin 14 hours before its first UTC day. Not longer: there are 96 rows where there is one for a day. */
export const QUARTERS_KEPT_MS = 91 * DAY_MS

/** Value of the dimension `all`. */
export const EVERYTHING = ''

type QuarterDimension = Exclude<Dimension, 'client'> | 'all'

type Counts = Readonly<Record<CounterName, number>>

interface QuarterCounterRow extends Counts {
  workspace_id: string
  dimension: QuarterDimension
  starts_at: number
  value: string
}

declare module '../../db/tables.js' {
  interface Tables {
    quarter_counters: QuarterCounterRow
  }
}

export interface QuarterCount {
  readonly workspaceId: string
  readonly dimension: QuarterDimension
  /** Ms since epoch, a multiple of `QUARTER_MS`. */
  readonly startsAt: number
  /** As in the daily counters; of `all`, `EVERYTHING`. */
  readonly value: string
  readonly counts: Partial<Counts>
}

const addRows = statement(
  (_, { rows }: Rows) =>
    sql`insert into quarter_counters (workspace_id, dimension, starts_at, value, ${sql.join(COUNTER_NAMES.map(name => sql.ref(name)))})
      values ${sql.join(rows.map(row => sql`(${sql.join(row)})`))}
      on conflict (workspace_id, dimension, starts_at, value) do update set ${sql.join(
        COUNTER_NAMES.map(
          name => sql`${sql.ref(name)} = quarter_counters.${sql.ref(name)} + ${sql.ref(`excluded.${name}`)}`,
        ),
      )}`,
)

/** Increments counters. @param quarters each workspace, dimension, quarter and value at most once */
export async function addToQuarters(db: Queries, quarters: readonly QuarterCount[]): Promise<void> {
  const rows = quarters.map(({ workspaceId, dimension, startsAt, value, counts }) => [
    ...[workspaceId, dimension, startsAt, value],
    ...COUNTER_NAMES.map(name => counts[name] ?? 0),
  ])
  for (const piece of inPieces(rows)) await addRows(db, { rows: piece })
}

type Span = Pick<MidnightShift, 'from' | 'to'>

/** @returns the counts of one value in each span, by its `at`; spans without counts are omitted */
export async function sumSpans(
  db: Queries,
  workspaceId: string,
  { dimension, value }: { readonly dimension: QuarterDimension; readonly value: string },
  spans: readonly MidnightShift[],
): Promise<ReadonlyMap<number, Counts>> {
  const list = JSON.stringify(spans.map(({ at, from, to }) => [at, from, to]))
  const all =
    dialectOf(db) === 'sqlite'
      ? sql`json_each(${list}) as spans`
      : sql`jsonb_array_elements(cast(${list} as jsonb)) as spans (value)`
  const part = (at: number) => sql`cast(spans.value ->> ${sql.lit(at)} as bigint)`
  // A cross join, so that SQLite reads the index once for each span.
  const { rows } = await sql<Counts & { readonly at: number }>`
    select ${part(0)} as at, ${summedCounts()}
    from ${all} cross join quarter_counters as counters
    where counters.workspace_id = ${workspaceId} and counters.dimension = ${dimension}
      and counters.starts_at >= ${part(1)} and counters.starts_at < ${part(2)} and counters.value = ${value}
    group by 1`.execute(db)
  return new Map(rows.map(row => [row.at, row]))
}

/** Rows of one span as `value` and counts, for sums with the daily counters. @param sign whether they are added or subtracted */
export function signedCounts(
  workspaceId: string,
  dimension: QuarterDimension,
  { from, to }: Span,
  sign: 1 | -1,
): RawBuilder<unknown> {
  const columns = COUNTER_NAMES.map(name => sql`${sql.ref(name)} * ${sql.lit(sign)}`)
  return sql`select value, ${sql.join(columns)} from quarter_counters
    where workspace_id = ${workspaceId} and dimension = ${dimension} and starts_at >= ${from} and starts_at < ${to}`
}

function summedCounts(): RawBuilder<unknown> {
  return sql.join(COUNTER_NAMES.map(name => sql`cast(sum(${sql.ref(name)}) as bigint) as ${sql.ref(name)}`))
}

/** Deletes the counters of one value on a UTC day. @returns what they counted */
export async function takeQuarters(
  db: Queries,
  {
    workspaceId,
    dimension,
    day,
    value,
  }: Pick<QuarterCount, 'workspaceId' | 'dimension' | 'value'> & { readonly day: number },
): Promise<QuarterCount[]> {
  const rows = await db
    .deleteFrom('quarter_counters')
    .where('workspace_id', '=', workspaceId)
    .where('dimension', '=', dimension)
    .where('starts_at', '>=', day)
    .where('starts_at', '<', day + DAY_MS)
    .where('value', '=', value)
    .returningAll()
    .execute()
  return rows.map(({ workspace_id: _, dimension: __, starts_at: startsAt, value: ___, ...counts }) => ({
    workspaceId,
    dimension,
    startsAt,
    value,
    counts,
  }))
}

export async function deleteQuartersBefore(db: Queries, before: number, limit: number): Promise<number> {
  const result = await sql`
    delete from quarter_counters where (workspace_id, dimension, starts_at, value) in (
      select workspace_id, dimension, starts_at, value from quarter_counters
      where starts_at < ${before} order by starts_at limit ${limit}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}
