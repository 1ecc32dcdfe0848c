/** SQL of a campaign's report: counters by hour or day and by mailbox provider, few rows per campaign. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inPieces, statement, type Rows } from '../../db/statement.js'

/** Count columns by their name in code. */
const TIME_COLUMNS = {
  opens: 'opens',
  uniqueOpens: 'unique_opens',
  clicks: 'clicks',
  uniqueClicks: 'unique_clicks',
  machineOpens: 'machine_opens',
  machineClicks: 'machine_clicks',
  unsubscribes: 'unsubscribes',
  complaints: 'complaints',
} as const
type TimeName = keyof typeof TIME_COLUMNS
export const TIME_COUNTS = Object.keys(TIME_COLUMNS) as readonly TimeName[]

const PROVIDER_COLUMNS = {
  sends: 'sends',
  deliveries: 'deliveries',
  uniqueOpens: 'unique_opens',
  uniqueClicks: 'unique_clicks',
  bounces: 'bounces',
  complaints: 'complaints',
  unsubscribes: 'unsubscribes',
} as const
type ProviderName = keyof typeof PROVIDER_COLUMNS
export const PROVIDER_COUNTS = Object.keys(PROVIDER_COLUMNS) as readonly ProviderName[]

declare module '../../db/tables.js' {
  interface Tables {
    campaign_times: { campaign: number; starts_at: number } & Record<(typeof TIME_COLUMNS)[TimeName], number>
    campaign_providers: { campaign: number; provider: string } & Record<
      (typeof PROVIDER_COLUMNS)[ProviderName],
      number
    >
  }
}

export interface TimeCount {
  readonly campaign: number
  /** Ms since epoch UTC. */
  readonly startsAt: number
  readonly counted: Readonly<Partial<Record<TimeName, number>>>
}

export interface ProviderCount {
  readonly campaign: number
  readonly provider: string
  readonly counted: Readonly<Partial<Record<ProviderName, number>>>
}

const adding = (table: 'campaign_times' | 'campaign_providers', key: string, columns: readonly string[]) =>
  statement(
    (_, { rows }: Rows) =>
      sql`insert into ${sql.table(table)} (campaign, ${sql.ref(key)}, ${sql.join(columns.map(name => sql.ref(name)))})
        values ${sql.join(rows.map(row => sql`(${sql.join(row)})`))}
        on conflict (campaign, ${sql.ref(key)}) do update set ${sql.join(
          columns.map(
            name => sql`${sql.ref(name)} = ${sql.ref(`${table}.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
          ),
        )}`,
  )

const addTimes = adding('campaign_times', 'starts_at', Object.values(TIME_COLUMNS))
const addProviders = adding('campaign_providers', 'provider', Object.values(PROVIDER_COLUMNS))

/** Increments counters. @param counts each campaign and time at most once */
export async function addToTimes(db: Queries, counts: readonly TimeCount[]): Promise<void> {
  const rows = counts.map(({ campaign, startsAt, counted }) => [
    ...[campaign, startsAt],
    ...TIME_COUNTS.map(name => counted[name] ?? 0),
  ])
  for (const piece of inPieces(rows)) await addTimes(db, { rows: piece })
}

/** Increments counters. @param counts each campaign and provider at most once */
export async function addToProviders(db: Queries, counts: readonly ProviderCount[]): Promise<void> {
  const rows = counts.map(({ campaign, provider, counted }) => [
    ...[campaign, provider],
    ...PROVIDER_COUNTS.map(name => counted[name] ?? 0),
  ])
  for (const piece of inPieces(rows)) await addProviders(db, { rows: piece })
}

const selectStarts = statement((db, { campaigns }: { campaigns: readonly number[] }) =>
  db.selectFrom('campaigns').select(['seq', 'started_at']).where('seq', 'in', campaigns),
)

/** When each campaign started, ms since epoch UTC; those that have not are omitted. @param campaigns of one batch of events */
export async function findStarts(
  db: Queries,
  campaigns: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await selectStarts(db, { campaigns })
  return new Map(
    rows.flatMap(({ seq, started_at: at }) => (at === null ? [] : [[seq, at] as [number, number]])),
  )
}

export type TimeCounts = Readonly<Record<TimeName, number>> & { readonly startsAt: number }

/** Oldest first; times without events are omitted. */
export async function listTimes(db: Queries, campaign: number): Promise<TimeCounts[]> {
  const rows = await db
    .selectFrom('campaign_times')
    .selectAll()
    .where('campaign', '=', campaign)
    .orderBy('starts_at')
    .execute()
  return rows.map(row => ({
    startsAt: row.starts_at,
    opens: row.opens,
    uniqueOpens: row.unique_opens,
    clicks: row.clicks,
    uniqueClicks: row.unique_clicks,
    machineOpens: row.machine_opens,
    machineClicks: row.machine_clicks,
    unsubscribes: row.unsubscribes,
    complaints: row.complaints,
  }))
}

export type ProviderCounts = Readonly<Record<ProviderName, number>> & { readonly provider: string }

/** Most sends first, then all providers without a name. */
export async function listProviders(db: Queries, campaign: number): Promise<ProviderCounts[]> {
  const rows = await db
    .selectFrom('campaign_providers')
    .selectAll()
    .where('campaign', '=', campaign)
    .orderBy(sql`case provider when '' then 1 else 0 end`)
    .orderBy('sends', 'desc')
    .orderBy('provider')
    .execute()
  return rows.map(row => ({
    provider: row.provider,
    sends: row.sends,
    deliveries: row.deliveries,
    uniqueOpens: row.unique_opens,
    uniqueClicks: row.unique_clicks,
    bounces: row.bounces,
    complaints: row.complaints,
    unsubscribes: row.unsubscribes,
  }))
}
