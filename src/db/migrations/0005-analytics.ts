/**
 * What analytics keep: counters by day, conversions, product views; and the log of what was changed in a workspace.
 *
 * Messages that were opened get an index of their own, which costs nothing for those that were not.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('daily_counters')
    .addColumn('workspace_id', 'text', c => c.notNull())
    // Midnight in UTC.
    .addColumn('day', 'bigint', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('count', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('daily_counters_pk', ['workspace_id', 'day', 'name'])
    .execute()
  await conversions(db)
  await productViews(db, dialect)
  await activities(db, dialect)
}

async function conversions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('conversions')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    // No foreign key: what somebody bought outlives them as a contact.
    .addColumn('contact_id', 'text', c => c.notNull())
    .addColumn('value', 'double precision', c => c.notNull())
    .addColumn('currency', 'text', c => c.notNull())
    // JSON.
    .addColumn('metadata', 'text', c => c.notNull())
    // The message that it is put down to.
    .addColumn('message_id', 'text')
    .addColumn('campaign_id', 'text')
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('conversions_by_workspace')
    .on('conversions')
    .columns(['workspace_id', 'id'])
    .execute()
  await sql`create index messages_opened on messages (workspace_id, lower(recipient), opened_at)
    where opened_at is not null`.execute(db)
}

async function productViews(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('product_views')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('contact_id', 'text', c => c.notNull())
    .addColumn('product_id', 'text', c => c.notNull())
    // JSON: name, addresses, price and whatever else was told of it.
    .addColumn('product', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('viewed_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('product_views_by_contact')
    .on('product_views')
    .columns(['workspace_id', 'contact_id', 'viewed_at'])
    .execute()
}

async function activities(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('activities')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('workspace_id', 'text', c => c.notNull())
    // api_key, operator or system.
    .addColumn('actor_type', 'text', c => c.notNull())
    .addColumn('key_id', 'text')
    .addColumn('key_name', 'text')
    .addColumn('action', 'text', c => c.notNull())
    .addColumn('subject', 'text', c => c.notNull())
    // JSON.
    .addColumn('details', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('activities_by_workspace')
    .on('activities')
    .columns(['workspace_id', 'seq'])
    .execute()
}

/** A key that grows with every insert and is never given twice. */
function sequenceKey<T extends string>(
  table: CreateTableBuilder<T>,
  dialect: Dialect,
): CreateTableBuilder<T> {
  return dialect === 'sqlite'
    ? table.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
    : table.addColumn('seq', 'bigserial', c => c.primaryKey())
}
