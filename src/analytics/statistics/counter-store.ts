/**
 * SQL of the daily counters (UTC days), in total for each workspace and by campaign, tag or sender domain.
 *
 * Incremented by the consumer `analytics` and read by `GET /analytics`; reports never count messages. A workspace has at most `MAX_VALUES`
 * values per dimension and day; all further ones share the row with the empty value.
 */
import { type Insertable, type RawBuilder, sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inPieces, statement, type Rows } from '../../db/statement.js'
import { DAY_MS } from '../../world/time/zone-days.js'

/** @returns midnight UTC of that day; both in ms since epoch */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS
}

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

export const DIMENSIONS = ['campaign', 'tag', 'domain'] as const
/** Opens are counted by mail client too, which reports do not group by. */
export type Dimension = (typeof DIMENSIONS)[number] | 'client'

/** Values counted separately, per workspace, dimension and day. */
export const MAX_VALUES = 500
/** Row of all further values. No tag, id or domain is empty. */
export const OTHER_VALUES = ''

type Counts = Readonly<Record<CounterName, number>>

interface GroupCounterRow extends Counts {
  workspace_id: string
  dimension: Dimension
  day: number
  value: string
}

declare module '../../db/tables.js' {
  interface Tables {
    daily_group_counters: GroupCounterRow
  }
}

export interface GroupCount {
  readonly workspaceId: string
  readonly dimension: Dimension
  /** Midnight UTC, ms since epoch. */
  readonly day: number
  /** A campaign's id, a tag, a domain or a mail client. */
  readonly value: string
  readonly counts: Partial<Counts>
}

/**
 * Increments counters.
 *
 * @param groups each workspace, dimension, day and value at most once
 * @returns keys (`keyOf`) of those that were counted as others
 */
export async function addToGroups(db: Queries, groups: readonly GroupCount[]): Promise<ReadonlySet<string>> {
  const counted = await withinLimit(db, groups)
  for (const piece of inPieces(merged(counted).map(rowOf))) await addGroupRows(db, { rows: piece })
  return new Set(groups.filter(({ value }, at) => counted[at]?.value !== value).map(keyOf))
}

const addGroupRows = statement(
  (_, { rows }: Rows) =>
    sql`insert into daily_group_counters (workspace_id, dimension, day, value, ${sql.join(COUNTER_NAMES.map(name => sql.ref(name)))})
      values ${sql.join(rows.map(row => sql`(${sql.join(row)})`))}
      on conflict (workspace_id, dimension, day, value) do update set ${sql.join(
        COUNTER_NAMES.map(
          name =>
            sql`${sql.ref(name)} = daily_group_counters.${sql.ref(name)} + ${sql.ref(`excluded.${name}`)}`,
        ),
      )}`,
)

function rowOf({ workspaceId, dimension, day, value, counts }: GroupCount): (string | number)[] {
  return [workspaceId, dimension, day, value, ...COUNTER_NAMES.map(name => counts[name] ?? 0)]
}

/** On a day that is full, new values count as others. */
async function withinLimit(db: Queries, groups: readonly GroupCount[]): Promise<GroupCount[]> {
  const known = await findKnown(db, groups)
  const room = new Map<string, number>()
  const kept: GroupCount[] = []
  for (const group of groups) {
    if (known.has(keyOf(group))) {
      kept.push(group)
      continue
    }
    const day = dayKeyOf(group)
    const left = room.get(day) ?? MAX_VALUES - (await countValues(db, group))
    room.set(day, Math.max(0, left - 1))
    kept.push(left > 0 ? group : { ...group, value: OTHER_VALUES })
  }
  return kept
}

const selectKnown = statement(
  (_, { rows }: Rows) =>
    sql`select counters.workspace_id, counters.dimension, counters.day, counters.value
      from (values ${sql.join(
        rows.map(
          ([workspace, dimension, day, value]) =>
            sql`(cast(${workspace} as text), cast(${dimension} as text), cast(${day} as bigint), cast(${value} as text))`,
        ),
      )}) as asked
      inner join daily_group_counters as counters on counters.workspace_id = asked.column1
        and counters.dimension = asked.column2 and counters.day = asked.column3 and counters.value = asked.column4`,
)

async function findKnown(db: Queries, groups: readonly GroupCount[]): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  const asked = groups.map(({ workspaceId, dimension, day, value }) => [workspaceId, dimension, day, value])
  for (const piece of inPieces(asked))
    for (const row of (await selectKnown(db, { rows: piece })).rows as GroupCounterRow[])
      known.add(keyOf({ ...row, workspaceId: row.workspace_id }))
  return known
}

async function countValues(db: Queries, { workspaceId, dimension, day }: GroupCount): Promise<number> {
  const { total } = await db
    .selectFrom('daily_group_counters')
    .select(e => e.fn.countAll<number>().as('total'))
    .where('workspace_id', '=', workspaceId)
    .where('dimension', '=', dimension)
    .where('day', '=', day)
    .where('value', '<>', OTHER_VALUES)
    .executeTakeFirstOrThrow()
  return total
}

/** Merges rows with the same key: several values may have become others. */
function merged(groups: readonly GroupCount[]): GroupCount[] {
  const rows = new Map<string, GroupCount>()
  for (const group of groups) {
    const key = keyOf(group)
    const before = rows.get(key)
    rows.set(key, before ? { ...group, counts: sumOf(before.counts, group.counts) } : group)
  }
  return [...rows.values()]
}

function sumOf(one: Partial<Counts>, other: Partial<Counts>): Partial<Counts> {
  const sum: Partial<Record<CounterName, number>> = { ...one }
  for (const name of COUNTER_NAMES) if (other[name] !== undefined) sum[name] = (sum[name] ?? 0) + other[name]
  return sum
}

type GroupDay = Pick<GroupCount, 'workspaceId' | 'dimension' | 'day'>

function dayKeyOf({ workspaceId, dimension, day }: GroupDay): string {
  return `${workspaceId} ${dimension} ${day}`
}

export function keyOf(group: GroupDay & Pick<GroupCount, 'value'>): string {
  return `${dayKeyOf(group)} ${group.value}`
}

/** Midnights UTC, ms since epoch; both inclusive. */
export interface Days {
  readonly first: number
  readonly last: number
}

/** Counts of one value on each day of a range; days without counts are omitted. */
export async function readGroupDays(
  db: Queries,
  workspaceId: string,
  dimension: Dimension,
  value: string,
  days: readonly number[],
): Promise<(Counts & { readonly day: number })[]> {
  return db
    .selectFrom('daily_group_counters')
    .select(['day', ...COUNTER_NAMES])
    .where('workspace_id', '=', workspaceId)
    .where('dimension', '=', dimension)
    .where('day', 'in', days)
    .where('value', '=', value)
    .execute()
}

/** Rows of a range as `value` and counts. @param edges selects of the same columns, for a range that does not begin or end with a UTC day */
function countsIn(
  workspaceId: string,
  dimension: Dimension,
  { first, last }: Days,
  edges: readonly RawBuilder<unknown>[],
): RawBuilder<unknown> {
  const days = sql`select value, ${sql.join(COUNTER_NAMES.map(name => sql.ref(name)))} from daily_group_counters
    where workspace_id = ${workspaceId} and dimension = ${dimension} and day between ${first} and ${last}`
  return sql`(${sql.join([days, ...edges], sql` union all `)}) as counters`
}

/** Counts of each value over a range, most sends first. @param limit maximum number of values */
export async function readGroups(
  db: Queries,
  workspaceId: string,
  dimension: Dimension,
  days: Days,
  edges: readonly RawBuilder<unknown>[],
  limit: number,
): Promise<(Counts & { readonly value: string })[]> {
  const { rows } = await sql<Counts & { readonly value: string }>`
    select value, ${sql.join(COUNTER_NAMES.map(name => sql`cast(sum(${sql.ref(name)}) as bigint) as ${sql.ref(name)}`))}
    from ${countsIn(workspaceId, dimension, days, edges)}
    where value <> ${OTHER_VALUES}
    group by value
    having ${sql.join(
      COUNTER_NAMES.map(name => sql`sum(${sql.ref(name)})`),
      sql` + `,
    )} > 0
    order by sum(campaign_sends) + sum(api_sends) desc, sum(accepted) desc, value
    limit ${limit}`.execute(db)
  return rows
}

export async function sumGroups(
  db: Queries,
  workspaceId: string,
  dimension: Dimension,
  days: Days,
  edges: readonly RawBuilder<unknown>[],
): Promise<Counts> {
  const { rows } = await sql<Counts>`
    select ${sql.join(COUNTER_NAMES.map(name => sql`cast(coalesce(sum(${sql.ref(name)}), 0) as bigint) as ${sql.ref(name)}`))}
    from ${countsIn(workspaceId, dimension, days, edges)}`.execute(db)
  const [sum] = rows
  if (!sum) throw new Error('sum query returned no row')
  return sum
}

export async function deleteGroupsBefore(db: Queries, day: number, limit: number): Promise<number> {
  const result = await sql`
    delete from daily_group_counters where (workspace_id, dimension, day, value) in (
      select workspace_id, dimension, day, value from daily_group_counters where day < ${day} order by day limit ${limit}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Opens by people, by mail client. @param firstDay midnight UTC, ms since epoch, inclusive */
export async function readClientOpens(
  db: Queries,
  workspaceId: string,
  firstDay: number,
): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('daily_group_counters')
    .select(({ fn }) => ['value', fn.sum<number>('opens').as('opens')])
    .where('workspace_id', '=', workspaceId)
    .where('dimension', '=', 'client')
    .where('day', '>=', firstDay)
    .groupBy('value')
    .execute()
  return new Map(rows.map(({ value, opens }) => [value, opens]))
}
