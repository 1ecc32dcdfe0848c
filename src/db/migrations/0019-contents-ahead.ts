/** Contents that are stored before their messages, in transactions of their own: those that nobody has accepted yet. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('contents_ahead')
    .addColumn('content_id', 'text', c => c.primaryKey().notNull())
    .execute()
}
