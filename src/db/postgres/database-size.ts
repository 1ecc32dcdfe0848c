/** The size of the PostgreSQL database. */
import { sql } from 'kysely'
import type { Queries } from '../database.js'

/** @returns octets of all its tables and indexes */
export async function readPostgresSize(db: Queries): Promise<number> {
  const { rows } = await sql<{
    octets: number | string
  }>`select pg_database_size(current_database()) as octets`.execute(db)
  return Number(rows[0]?.octets ?? 0)
}
