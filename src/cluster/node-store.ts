/**
 * SQL of the nodes that share the database, and of the leases they hold.
 *
 * A node is one run of the server; its row says until when it is believed alive. Leases belong to that row and go with it, so they need no
 * renewal of their own. Drains belong to the host name and outlive the row. Times are the database's, since clocks of machines disagree;
 * SQLite's only node uses its own.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf, type Queries } from '../db/database.js'
import type { Flag } from '../db/tables.js'
import { LEASES, type LeaseName } from './leases.js'
import { ROLES, type NodeState, type Role } from './roles.js'

interface NodeRow {
  id: string
  name: string
  /** Separated by commas. */
  roles: string
  is_stopping: Flag
  started_at: number
  alive_until: number
}

interface DrainedNodeRow {
  name: string
  drained_at: number
}

interface LeaseRow {
  name: string
  node_id: string
  taken_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    nodes: NodeRow
    drained_nodes: DrainedNodeRow
    leases: LeaseRow
  }
}

export interface ClusterNode {
  readonly id: string
  /** Host name. */
  readonly name: string
  readonly roles: readonly Role[]
  readonly state: NodeState
  /** Ms since epoch UTC, by the database's clock. */
  readonly startedAt: number
  readonly aliveUntil: number
  /** The leases it holds, in the order of `LEASES`. */
  readonly leases: readonly LeaseName[]
}

/** @param now of a database without a clock of its own */
function databaseTime(db: Queries, now: number): RawBuilder<number> {
  return dialectOf(db) === 'postgres'
    ? sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : sql<number>`${now}`
}

export async function insertNode(
  db: Queries,
  { id, name, roles }: Pick<ClusterNode, 'id' | 'name' | 'roles'>,
  now: number,
  aliveMs: number,
): Promise<void> {
  const time = databaseTime(db, now)
  await db
    .insertInto('nodes')
    .values({
      id,
      name,
      roles: roles.join(),
      is_stopping: 0,
      started_at: time,
      alive_until: sql<number>`${time} + ${sql.lit(aliveMs)}`,
    })
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

/** The node takes no new work until it ends. */
export async function markStopping(db: Queries, id: string): Promise<void> {
  await db.updateTable('nodes').set({ is_stopping: 1 }).where('id', '=', id).execute()
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
  const rows = await db
    .selectFrom('nodes')
    .leftJoin('drained_nodes', 'drained_nodes.name', 'nodes.name')
    .leftJoin('leases', 'leases.node_id', 'nodes.id')
    .selectAll('nodes')
    .select(['drained_nodes.drained_at', 'leases.name as lease'])
    .orderBy('nodes.started_at')
    .orderBy('nodes.id')
    .execute()
  const nodes = new Map(rows.map(row => [row.id, row]))
  const leases = new Set(rows.map(({ id, lease }) => `${id} ${lease}`))
  return [...nodes.values()].map(row => ({
    id: row.id,
    name: row.name,
    roles: readRoles(row.roles),
    state: row.is_stopping === 1 ? 'stopping' : row.drained_at === null ? 'active' : 'draining',
    startedAt: row.started_at,
    aliveUntil: row.alive_until,
    leases: LEASES.filter(name => leases.has(`${row.id} ${name}`)),
  }))
}

/** Roles of a later version are ignored. */
function readRoles(text: string): Role[] {
  const names = text.split(',')
  return ROLES.filter(role => names.includes(role))
}

/** Takes a lease that nobody holds. @returns whether it was free */
export async function takeLease(db: Queries, name: LeaseName, nodeId: string, now: number): Promise<boolean> {
  const result = await db
    .insertInto('leases')
    .values({ name, node_id: nodeId, taken_at: databaseTime(db, now) })
    .onConflict(conflict => conflict.column('name').doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

export async function deleteLease(db: Queries, name: LeaseName, nodeId: string): Promise<void> {
  await db.deleteFrom('leases').where('name', '=', name).where('node_id', '=', nodeId).execute()
}

/** @returns false if it was drained already */
export async function insertDrain(db: Queries, name: string, now: number): Promise<boolean> {
  const result = await db
    .insertInto('drained_nodes')
    .values({ name, drained_at: databaseTime(db, now) })
    .onConflict(conflict => conflict.column('name').doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** @returns whether it was drained */
export async function deleteDrain(db: Queries, name: string): Promise<boolean> {
  const result = await db.deleteFrom('drained_nodes').where('name', '=', name).executeTakeFirst()
  return result.numDeletedRows > 0n
}

export async function isDrained(db: Queries, name: string): Promise<boolean> {
  const row = await db.selectFrom('drained_nodes').select('name').where('name', '=', name).executeTakeFirst()
  return row !== undefined
}
