/** Campaigns for several lists and segments. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table campaigns add column audience text').execute(db)
}
