/**
 * Campaigns: what is sent to whom, one row for each recipient, and what came of it, counted as it happens.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await campaigns(db, dialect)
  await recipients(db, dialect)
  await links(db, dialect)
}

async function campaigns(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const counts = [
    // Recipients; the five after it are them, each counted once, and three who were left out when it was sent.
    ...['recipients', 'pending', 'queued', 'done', 'skipped', 'cancelled'],
    ...['unsubscribed', 'bounced', 'suppressed'],
    // What happened to their mail.
    ...['sends', 'deliveries', 'opens', 'unique_opens', 'clicks', 'unique_clicks', 'bounces', 'complaints'],
    'unsubscribes',
  ]
  await db.schema
    .createTable('campaigns')
    .$call(t =>
      dialect === 'sqlite'
        ? t.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
        : t.addColumn('seq', 'bigserial', c => c.primaryKey()),
    )
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('subject', 'text', c => c.notNull())
    .addColumn('template_id', 'text', c => c.notNull())
    .addColumn('list_id', 'text')
    .addColumn('segment_id', 'text')
    .addColumn('from_email', 'text')
    .addColumn('from_name', 'text')
    .addColumn('reply_to', 'text')
    .addColumn('track_opens', 'integer')
    .addColumn('track_clicks', 'integer')
    .addColumn('rate_per_hour', 'integer')
    // JSON.
    .addColumn('send_window', 'text')
    // draft, scheduled, sending, paused, completed, cancelled or failed.
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('error', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .addColumn('requested_at', 'bigint')
    .addColumn('scheduled_at', 'bigint')
    .addColumn('started_at', 'bigint')
    .addColumn('finished_at', 'bigint')
    // When there is something to be done for it; null: nothing.
    .addColumn('next_at', 'bigint')
    // JSON: whom it meant when it was sent.
    .addColumn('who', 'text')
    // Numbers of contacts: those before the first have their row, those after the last came too late.
    .addColumn('fixed_before', 'bigint')
    .addColumn('fixed_through', 'bigint')
    .addColumn('fixed_at', 'bigint')
    // The content of the messages that are made at present, and since when.
    .addColumn('content_id', 'text')
    .addColumn('content_at', 'bigint')
    .addColumn('recipients_pruned_at', 'bigint')
    .$call(t => counts.reduce<CreateTableBuilder<string>>(withCount, t))
    .execute()
  await db.schema
    .createIndex('campaigns_by_workspace')
    .on('campaigns')
    .columns(['workspace_id', 'seq', 'status'])
    .execute()
  await sql`create index campaigns_due on campaigns (next_at, seq) where next_at is not null`.execute(db)
  await sql`create index campaigns_finished on campaigns (finished_at, seq)
    where finished_at is not null and recipients_pruned_at is null`.execute(db)
  // What its messages are made of, while there are any to be made.
  await db.schema
    .createTable('campaign_letters')
    .addColumn('campaign', 'bigint', c => c.primaryKey())
    // JSON.
    .addColumn('letter', 'text', c => c.notNull())
    .execute()
}

function withCount(table: CreateTableBuilder<string>, name: string): CreateTableBuilder<string> {
  return table.addColumn(name, 'integer', c => c.notNull().defaultTo(0))
}

async function recipients(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('campaign_recipients')
    .addColumn('campaign', 'bigint', c => c.notNull())
    // Its number.
    .addColumn('contact', 'bigint', c => c.notNull())
    // pending, sent, delivered, opened, clicked, bounced, failed, skipped or cancelled.
    .addColumn('status', 'text', c => c.notNull())
    // Of one who was skipped.
    .addColumn('reason', 'text')
    .addColumn('message_id', 'text')
    .addColumn('has_opened', 'integer', c => c.notNull().defaultTo(0))
    .addColumn('has_clicked', 'integer', c => c.notNull().defaultTo(0))
    .addPrimaryKeyConstraint('campaign_recipients_pk', ['campaign', 'contact'])
    .$call(t => (dialect === 'sqlite' ? t.modifyEnd(sql`without rowid`) : t))
    .execute()
  await db.schema
    .createIndex('campaign_recipients_by_status')
    .on('campaign_recipients')
    .columns(['campaign', 'status', 'contact'])
    .execute()
  await sql`create index campaign_recipients_by_message on campaign_recipients (message_id)
    where message_id is not null`.execute(db)
}

async function links(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('campaign_links')
    .addColumn('campaign', 'bigint', c => c.notNull())
    .addColumn('link', 'integer', c => c.notNull())
    // Of the URL; empty for all links beyond those that are told apart.
    .addColumn('digest', 'text', c => c.notNull())
    .addColumn('url', 'text')
    .addColumn('clicks', 'integer', c => c.notNull())
    .addColumn('unique_clicks', 'integer', c => c.notNull())
    .addPrimaryKeyConstraint('campaign_links_pk', ['campaign', 'link'])
    .execute()
  await db.schema
    .createIndex('campaign_links_by_url')
    .on('campaign_links')
    .columns(['campaign', 'digest'])
    .unique()
    .execute()
  // Who has clicked which of them.
  await db.schema
    .createTable('campaign_clicks')
    .addColumn('campaign', 'bigint', c => c.notNull())
    .addColumn('link', 'integer', c => c.notNull())
    .addColumn('contact', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('campaign_clicks_pk', ['campaign', 'link', 'contact'])
    .$call(t => (dialect === 'sqlite' ? t.modifyEnd(sql`without rowid`) : t))
    .execute()
}
