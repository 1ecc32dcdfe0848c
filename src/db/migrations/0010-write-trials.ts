/** A row for the health check to write to: that commits reach the disk is only known of one that does. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('write_trials')
    .addColumn('id', 'integer', c => c.primaryKey())
    .addColumn('tried_at', 'bigint', c => c.notNull())
    .execute()
}
