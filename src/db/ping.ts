/** Whether the database answers; for the health check. */
import { sql } from 'kysely'
import type { Database } from './database.js'

/** Rejects when it does not. */
export async function ping(database: Database): Promise<void> {
  await sql`select 1`.execute(database.reader)
}
