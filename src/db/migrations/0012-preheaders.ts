/** What mail clients show beside the subject, of campaigns and of the campaigns of feeds. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table campaigns add column preheader text').execute(db)
  await sql.raw('alter table feeds add column preheader text').execute(db)
}
