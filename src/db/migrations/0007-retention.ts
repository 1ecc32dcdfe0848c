/**
 * What retention and the rechecking of domains need: marks and indexes by which they find their rows without a search.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await contents(db)
  await db.schema.createIndex('daily_counters_by_day').on('daily_counters').column('day').execute()
  await domains(db)
}

async function contents(db: Kysely<unknown>): Promise<void> {
  // When text and attachments were deleted; what stays is what the message log shows.
  await db.schema.alterTable('message_contents').addColumn('pruned_at', 'bigint').execute()
  await db.schema
    .createIndex('message_contents_whole')
    .on('message_contents')
    .column('created_at')
    .where(sql.ref('pruned_at'), 'is', null)
    .execute()
  // With the id, so that the messages of a large content can be gone through in pieces.
  await db.schema.dropIndex('messages_by_content').execute()
  await db.schema.createIndex('messages_by_content').on('messages').columns(['content_id', 'id']).execute()
}

async function domains(db: Kysely<unknown>): Promise<void> {
  const table = () => db.schema.alterTable('domains')
  // Null where nothing is checked: vouched, or removed.
  await table().addColumn('next_check_at', 'bigint').execute()
  // Only of a verified domain: since when, and how often in a row, its records were found wrong.
  await table().addColumn('failing_since', 'bigint').execute()
  await table()
    .addColumn('failed_checks', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  // When somebody last cared: added, verified by hand, or lost. The longer ago, the rarer the checks.
  await table()
    .addColumn('watched_since', 'bigint', c => c.notNull().defaultTo(0))
    .execute()
  await sql`update domains set watched_since = created_at`.execute(db)
  await sql`update domains set next_check_at = created_at
    where is_vouched = 0 and removed_at is null`.execute(db)
  await db.schema
    .createIndex('domains_to_check')
    .on('domains')
    .column('next_check_at')
    .where(sql.ref('next_check_at'), 'is not', null)
    .execute()
}
