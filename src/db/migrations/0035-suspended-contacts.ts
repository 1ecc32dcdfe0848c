/**
 * Contacts that a suppression unsubscribed, so that removing it can subscribe them again, and passes over a workspace's contacts that a
 * suppression of a whole domain causes.
 */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('contacts')
    .addColumn('is_suspended', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  await db.schema
    .createTable('suppression_sweeps')
    .addColumn('workspace_id', 'text', c => c.primaryKey())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('position', 'bigint', c => c.notNull())
    .execute()
}
