/**
 * Retention: deletes the oldest rows of an append-only table, in key order.
 *
 * Used by stores. Key order (sequence numbers, UUIDv7) is nearly time order; a row out of order does not block the others.
 */
import { sql } from 'kysely'
import type { Queries, Tx } from './database.js'
import type { Tables } from './tables.js'

/** Result of one retention step. */
export interface RemovedSome {
  readonly removed: number
  /** Whether another step may find rows. */
  readonly hasMore: boolean
}

/** Runs the work in a low-priority transaction. */
export type Write = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>

/**
 * One step, a few milliseconds of database work.
 *
 * @param limit rows examined
 */
export type RemoveSome = (limit: number, write: Write) => Promise<RemovedSome>

export interface GrowingTable<Name extends keyof Tables> {
  readonly table: Name
  /** Primary key. */
  readonly key: keyof Tables[Name] & string
  /** Timestamp column, ms since epoch UTC. */
  readonly time: keyof Tables[Name] & string
}

/**
 * @param before rows of this moment or later stay
 * @param limit rows examined
 * @returns number of deleted rows; 0 once the remaining rows are too young
 */
export async function deleteOldest<Name extends keyof Tables>(
  db: Queries,
  { table, key, time }: GrowingTable<Name>,
  before: number,
  limit: number,
): Promise<number> {
  const [name, id, moment] = [sql.table(table), sql.ref(key), sql.ref(time)]
  const result = await sql`
    delete from ${name} where ${id} in (
      select ${id} from (select ${id}, ${moment} from ${name} order by ${id} limit ${limit}) as oldest
      where ${moment} < ${before}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}
