/**
 * SQL by which nodes divide what they deliver: who uses which site, and which destinations are split among nodes (`node-shares.ts`).
 *
 * Times are the database's, and told as durations from now. PostgreSQL only.
 */
import { sql } from 'kysely'
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'

interface SiteUseRow {
  node_id: string
  site: string
  backoff_until: number | null
}

interface SplitDestinationRow {
  destination: string
  parts: number
  begins_at: number
  ends_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    site_uses: SiteUseRow
    split_destinations: SplitDestinationRow
  }
}

const NOW = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** A site that this node delivers to. */
export interface SiteUse {
  readonly site: string
  /** Until its back-off ends, ms. */
  readonly backoffLeftMs: number | undefined
}

/** @param ended sites that this node uses no more */
export async function writeSiteUses(
  db: Queries,
  nodeId: string,
  uses: readonly SiteUse[],
  ended: readonly string[],
): Promise<void> {
  if (ended.length > 0)
    await db
      .deleteFrom('site_uses')
      .where('node_id', '=', nodeId)
      .where('site', 'in', [...ended])
      .execute()
  if (uses.length === 0) return
  await db
    .insertInto('site_uses')
    .values(
      uses.map(({ site, backoffLeftMs }) => ({
        node_id: nodeId,
        site,
        backoff_until:
          backoffLeftMs === undefined ? null : sql<number>`${NOW} + ${Math.ceil(backoffLeftMs)}::bigint`,
      })),
    )
    .onConflict(conflict =>
      conflict
        .columns(['node_id', 'site'])
        .doUpdateSet({ backoff_until: sql<number | null>`excluded.backoff_until` }),
    )
    .execute()
}

export interface FoundSiteUse extends SiteUse {
  readonly nodeId: string
  /** The same while it is the same back-off. */
  readonly backoffUntil: number | null
}

/** Uses, by any node, of the sites that this node uses, in the order of node ids. */
export async function findSiteUses(db: Queries, nodeId: string): Promise<FoundSiteUse[]> {
  const rows = await db
    .selectFrom('site_uses')
    .selectAll()
    .select(sql<number | null>`backoff_until - ${NOW}`.as('left'))
    .where('site', 'in', query => query.selectFrom('site_uses').select('site').where('node_id', '=', nodeId))
    .orderBy('node_id')
    .execute()
  return rows.map(row => ({
    site: row.site,
    nodeId: row.node_id,
    backoffUntil: row.backoff_until,
    backoffLeftMs: row.left !== null && row.left > 0 ? row.left : undefined,
  }))
}

/** @returns time left of the back-offs of all nodes by site, ms */
export async function listBackoffs(db: Queries): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('site_uses')
    .select('site')
    .select(sql<number>`max(backoff_until) - ${NOW}`.as('left'))
    .where('backoff_until', '>', NOW)
    .groupBy('site')
    .execute()
  return new Map(rows.map(({ site, left }) => [site, left]))
}

/** A destination that several nodes deliver to. */
export interface Split {
  readonly destination: string
  readonly parts: number
  /** Until it takes effect, ms; below 0 if it has. */
  readonly beginsInMs: number
  readonly endsInMs: number
}

/** With the database's time, ms since epoch UTC. */
export async function findSplits(db: Queries): Promise<{ now: number; splits: Split[] }> {
  const { rows } = await sql<
    { now: number; destination: string | null } & Omit<SplitDestinationRow, 'destination'>
  >`
    select time.now, s.* from (select ${NOW} as now) as time
    left join split_destinations as s on s.ends_at > time.now
    order by s.destination`.execute(db)
  return {
    now: must(rows[0], 'the time of the database').now,
    splits: rows.flatMap(({ now, destination, parts, begins_at: beginsAt, ends_at: endsAt }) =>
      destination === null
        ? []
        : [{ destination, parts, beginsInMs: beginsAt - now, endsInMs: endsAt - now }],
    ),
  }
}

/** Splits the destination, or extends a split without changing its parts. */
export async function putSplit(
  db: Queries,
  { destination, parts, beginsInMs, endsInMs }: Split,
): Promise<void> {
  await db.deleteFrom('split_destinations').where('ends_at', '<=', NOW).execute()
  await db
    .insertInto('split_destinations')
    .values({
      destination,
      parts,
      begins_at: sql<number>`${NOW} + ${beginsInMs}::bigint`,
      ends_at: sql<number>`${NOW} + ${endsInMs}::bigint`,
    })
    .onConflict(conflict =>
      conflict.column('destination').doUpdateSet({ ends_at: sql<number>`excluded.ends_at` }),
    )
    .execute()
}

/** @returns how many of the lanes' messages are due and unclaimed; `most` at most */
export async function countDue(
  db: Queries,
  lanes: readonly string[],
  now: number,
  most: number,
): Promise<number> {
  const found = await db
    .selectFrom(
      db
        .selectFrom('queue')
        .select('message_id')
        .where('lane', 'in', [...lanes])
        .where('is_held', '=', 0)
        .where('claimed_by', 'is', null)
        .where('next_attempt_at', '<=', now)
        .limit(most)
        .as('due'),
    )
    .select(e => e.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return found.count
}
