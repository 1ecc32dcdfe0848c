/**
 * Who has a row of the queue in hand, and at how many crashes in a row it was.
 *
 * The index holds only rows in hand, some hundreds at most, whatever the length of the queue.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('queue').addColumn('claimed_by', 'text').execute()
  await db.schema
    .alterTable('queue')
    .addColumn('crashes', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  await db.schema
    .createIndex('queue_claimed')
    .on('queue')
    .column('claimed_by')
    .where(sql.ref('claimed_by'), 'is not', null)
    .execute()
}
