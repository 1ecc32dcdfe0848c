/**
 * Statistics by campaign, tag and sender domain; conversions by contact; campaigns that resend another one; and the queue by workspace.
 *
 * The two indexes of the queue are partial: a message enters one when it is queued and leaves it when it is claimed, and enters the other
 * only if it is deferred.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'

const COUNTS = [
  'accepted',
  'campaign_sends',
  'api_sends',
  'delivered',
  'opens',
  'clicks',
  'bounces',
  'complaints',
] as const

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('daily_group_counters')
    .addColumn('workspace_id', 'text', c => c.notNull())
    // campaign, tag or domain.
    .addColumn('dimension', 'text', c => c.notNull())
    // Midnight in UTC.
    .addColumn('day', 'bigint', c => c.notNull())
    // A campaign's id, a tag or a domain; '' is all beyond the limit of a day.
    .addColumn('value', 'text', c => c.notNull())
    .addPrimaryKeyConstraint('daily_group_counters_pk', ['workspace_id', 'dimension', 'day', 'value'])
    .$call(t => COUNTS.reduce<CreateTableBuilder<string>>(withCount, t))
    .execute()
  await db.schema
    .createIndex('daily_group_counters_by_day')
    .on('daily_group_counters')
    .column('day')
    .execute()
  await db.schema
    .createIndex('conversions_by_contact')
    .on('conversions')
    .columns(['workspace_id', 'contact_id', 'id'])
    .execute()
  await db.schema.alterTable('campaigns').addColumn('resend_of', 'text').execute()
  await db.schema.alterTable('campaigns').addColumn('resend_to', 'text').execute()
  await sql`create index queue_untried on queue (workspace_id, message_id) where attempts = 0`.execute(db)
  await sql`create index queue_deferred on queue (workspace_id, message_id)
    where attempts > 0 and claimed_by is null`.execute(db)
}

function withCount(table: CreateTableBuilder<string>, name: string): CreateTableBuilder<string> {
  return table.addColumn(name, 'bigint', c => c.notNull().defaultTo(0))
}
