/**
 * Retention: what it is made of, and deleting the oldest rows of a table that only grows at its end, along its key.
 *
 * Called by stores. Rows in the order of the key are in the order of time as well (sequence numbers, UUIDv7),
 * or nearly: one that is not holds up no other. Fails: as the database does.
 */
import { sql } from 'kysely'
import type { Queries, Tx } from './database.js'
import type { Tables } from './tables.js'

/** What one step of a retention came to. */
export interface RemovedSome {
  readonly removed: number
  /** Whether another step may find something. */
  readonly hasMore: boolean
}

/** Runs the work in a transaction, for which nobody is in a hurry. */
export type Write = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>

/**
 * One step, of a few milliseconds of database work.
 *
 * @param limit rows to be looked at
 */
export type RemoveSome = (limit: number, write: Write) => Promise<RemovedSome>

export interface GrowingTable<Name extends keyof Tables> {
  readonly table: Name
  /** Primary key. */
  readonly key: keyof Tables[Name] & string
  /** Its moment, ms since epoch UTC. */
  readonly time: keyof Tables[Name] & string
}

/**
 * @param before rows of this moment stay
 * @param limit rows looked at
 * @returns how many were deleted; 0 when those that are left are young
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
