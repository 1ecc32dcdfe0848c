/**
 * SQL of the nodes that share the database, and of the leases they hold.
 *
 * A node is one run of the server; its row says until when it is believed alive. Leases belong to that row and go with it, so they need no
 * renewal of their own. Times are the database's, since clocks of machines disagree; SQLite's only node uses its own.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf, type Queries } from '../db/database.js'

interface NodeRow {
  id: string
  name: string
  started_at: number
  alive_until: number
}

interface LeaseRow {
  name: string
  node_id: string
  taken_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    nodes: NodeRow
    leases: LeaseRow
  }
}

export interface ClusterNode {
  readonly id: string
  /** Host name. */
  readonly name: string
  /** Ms since epoch UTC, by the database's clock. */
  readonly startedAt: number
  readonly aliveUntil: number
  /** Names of the leases it holds. */
  readonly leases: readonly string[]
}

/** @param now of a database without a clock of its own */
function databaseTime(db: Queries, now: number): RawBuilder<number> {
  return dialectOf(db) === 'postgres'
    ? sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : sql<number>`${now}`
}

export async function insertNode(
  db: Queries,
  { id, name }: Pick<ClusterNode, 'id' | 'name'>,
  now: number,
  aliveMs: number,
): Promise<void> {
  const time = databaseTime(db, now)
  await db
    .insertInto('nodes')
    .values({ id, name, started_at: time, alive_until: sql<number>`${time} + ${sql.lit(aliveMs)}` })
    .execute()
}

/** @returns whether the node still has its row */
export async function renewNode(db: Queries, id: string, now: number, aliveMs: number): Promise<boolean> {
  const result = await db
    .updateTable('nodes')
    .set({ alive_until: sql<number>`${databaseTime(db, now)} + ${sql.lit(aliveMs)}` })
    .where('id', '=', id)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** With its leases. */
export async function deleteNode(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('nodes').where('id', '=', id).execute()
}

/**
 * Deletes nodes of a PostgreSQL database that were not heard of in time, with their leases; none until its server has run for `aliveMs`, since
 * it heard of nobody before.
 *
 * @returns them
 */
export async function deleteSilentNodes(
  db: Queries,
  aliveMs: number,
): Promise<readonly { id: string; name: string }[]> {
  return db
    .deleteFrom('nodes')
    .where('alive_until', '<', databaseTime(db, 0))
    .where(
      sql<boolean>`pg_postmaster_start_time() < clock_timestamp() - ${sql.lit(aliveMs)} * interval '1 millisecond'`,
    )
    .returning(['id', 'name'])
    .execute()
}

/** For a database that only one process serves: every other row is left by an earlier run. */
export async function deleteOtherNodes(
  db: Queries,
  id: string,
): Promise<readonly { id: string; name: string }[]> {
  return db.deleteFrom('nodes').where('id', '!=', id).returning(['id', 'name']).execute()
}

/** In the order in which they joined. */
export async function listNodes(db: Queries): Promise<ClusterNode[]> {
  const nodes = await db.selectFrom('nodes').selectAll().orderBy('started_at').orderBy('id').execute()
  const leases = await db.selectFrom('leases').select(['name', 'node_id']).orderBy('name').execute()
  return nodes.map(row => ({
    id: row.id,
    name: row.name,
    startedAt: row.started_at,
    aliveUntil: row.alive_until,
    leases: leases.filter(lease => lease.node_id === row.id).map(lease => lease.name),
  }))
}

/** Takes a lease that nobody holds. @returns whether it was free */
export async function takeLease(db: Queries, name: string, nodeId: string, now: number): Promise<boolean> {
  const result = await db
    .insertInto('leases')
    .values({ name, node_id: nodeId, taken_at: databaseTime(db, now) })
    .onConflict(conflict => conflict.column('name').doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}
