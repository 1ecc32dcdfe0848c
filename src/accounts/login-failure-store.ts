/** SQL of the journal of failed logins that nodes share. Times are the database's. PostgreSQL only. */
import { sql } from 'kysely'
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'
import type { AgedLoginEvent, LoginEvent } from './login-guard.js'

interface LoginFailureRow {
  seq: number
  node_id: string
  kind: LoginEvent['kind']
  address: string
  account_hash: string | null
  account: string | null
  at: number
}

declare module '../db/tables.js' {
  interface Tables {
    login_failures: LoginFailureRow
  }
}

const NOW = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** @returns its number */
export async function insertLoginEvent(
  db: Queries,
  nodeId: string,
  { kind, address, accountHash, account }: LoginEvent,
): Promise<number> {
  const { seq } = await db
    .insertInto('login_failures')
    .values({
      seq: sql<number>`default`,
      node_id: nodeId,
      kind,
      address,
      account_hash: accountHash ?? null,
      account: account ?? null,
      at: NOW,
    })
    .returning('seq')
    .executeTakeFirstOrThrow()
  return seq
}

export async function deleteLoginEvent(db: Queries, seq: number): Promise<void> {
  await db.deleteFrom('login_failures').where('seq', '=', seq).execute()
}

export interface FoundLoginEvent extends AgedLoginEvent {
  readonly seq: number
  /** Ms since epoch UTC. */
  readonly at: number
}

/** Of other nodes, oldest first; of more than `limit` the newest. @param since ms since epoch UTC */
export async function findLoginEvents(
  db: Queries,
  nodeId: string,
  since: number,
  limit: number,
): Promise<FoundLoginEvent[]> {
  const rows = await db
    .selectFrom('login_failures')
    .selectAll()
    .select(sql<number>`${NOW} - at`.as('age'))
    .where('at', '>=', since)
    .where('node_id', '!=', nodeId)
    .orderBy('at', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute()
  return rows.reverse().map(row => ({
    seq: row.seq,
    at: row.at,
    ageMs: Math.max(0, row.age),
    kind: row.kind,
    address: row.address,
    accountHash: row.account_hash ?? undefined,
    account: row.account ?? undefined,
  }))
}

/** @returns the database's time, ms since epoch UTC */
export async function loginTime(db: Queries): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${NOW} as now`.execute(db)
  return must(rows[0], 'the time of the database').now
}

export async function deleteLoginEvents(db: Queries, olderThanMs: number): Promise<void> {
  await db
    .deleteFrom('login_failures')
    .where('at', '<', sql<number>`${NOW} - ${olderThanMs}::bigint`)
    .execute()
}
