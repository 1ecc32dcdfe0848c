/**
 * The first schema: accounts, domains, suppressions, messages, queue, attempts, events.
 *
 * Conventions are those of `tables.ts`: moments in ms since epoch UTC, flags 0/1, JSON as text, UUID text keys.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await accounts(db)
  await deliverability(db, dialect)
  await messages(db)
  await queue(db, dialect)
  await events(db, dialect)
}

async function accounts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('workspaces')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('default_from_email', 'text')
    .addColumn('default_from_name', 'text')
    .addColumn('company_name', 'text')
    .addColumn('company_address', 'text')
    .addColumn('currency', 'text', c => c.notNull())
    .addColumn('timezone', 'text', c => c.notNull())
    .addColumn('attribution', 'integer', c => c.notNull())
    .addColumn('hourly_limit', 'integer', c => c.notNull())
    .addColumn('daily_limit', 'integer', c => c.notNull())
    .addColumn('allow_private_webhooks', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  // No foreign key: a key outlives its workspace, to answer workspace_not_found rather than unauthorized.
  await db.schema
    .createTable('api_keys')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('key_hash', 'text', c => c.notNull().unique())
    .addColumn('key_hint', 'text', c => c.notNull())
    .addColumn('type', 'text', c => c.notNull())
    .addColumn('permissions', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('rate_limit', 'integer', c => c.notNull())
    .addColumn('email_rate_limit', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('revoked_at', 'bigint')
    .execute()
  await db.schema.createIndex('api_keys_by_workspace').on('api_keys').column('workspace_id').execute()
  // One row per workspace and window (hour or day) in which something was accepted.
  await db.schema
    .createTable('sending_usage')
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('window_kind', 'text', c => c.notNull())
    .addColumn('window_start', 'bigint', c => c.notNull())
    .addColumn('accepted', 'integer', c => c.notNull())
    .addPrimaryKeyConstraint('sending_usage_pk', ['workspace_id', 'window_kind'])
    .execute()
  // The appliance's own secrets, e.g. what signs return paths; older versions stay to verify what is under way.
  await db.schema
    .createTable('secrets')
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('version', 'integer', c => c.notNull())
    .addColumn('value', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('secrets_pk', ['name', 'version'])
    .execute()
}

async function deliverability(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('domains')
    .addColumn('id', 'text', c => c.primaryKey())
    // A workspace's id, or 'system' for the appliance's own domain (the shared sending address).
    .addColumn('owner', 'text', c => c.notNull())
    .addColumn('domain', 'text', c => c.notNull())
    .addColumn('verification_token', 'text', c => c.notNull())
    .addColumn('is_vouched', 'integer', c => c.notNull())
    .addColumn('verified_at', 'bigint')
    .addColumn('checked_at', 'bigint')
    .addColumn('findings', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    // A removed domain keeps its keys for the mail that is still queued.
    .addColumn('removed_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('domains_by_owner')
    .on('domains')
    .columns(['owner', 'domain'])
    .unique()
    .where(sql.ref('removed_at'), 'is', null)
    .execute()
  await db.schema
    .createTable('dkim_keys')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('domain_id', 'text', c => c.notNull().references('domains.id').onDelete('cascade'))
    .addColumn('selector', 'text', c => c.notNull().unique())
    .addColumn('algorithm', 'text', c => c.notNull())
    .addColumn('private_key', 'text', c => c.notNull())
    .addColumn('public_key', 'text', c => c.notNull())
    .addColumn('state', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    // Only while it is retiring: from when on its selector may be given another key.
    .addColumn('retire_at', 'bigint')
    // Only of a standby whose selector had another key before: from when on it is this one.
    .addColumn('replaced_at', 'bigint')
    .execute()
  await db.schema.createIndex('dkim_keys_by_domain').on('dkim_keys').column('domain_id').execute()
  await db.schema
    .createIndex('dkim_keys_retiring')
    .on('dkim_keys')
    .column('retire_at')
    .where(sql.ref('retire_at'), 'is not', null)
    .execute()
  await db.schema
    .createTable('suppressions')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('email', 'text', c => c.notNull())
    .addColumn('reason', 'text', c => c.notNull())
    .addColumn('scope', 'text', c => c.notNull())
    .addColumn('source_message_id', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addUniqueConstraint('suppressions_by_email', ['workspace_id', 'email'])
    .execute()
}

async function messages(db: Kysely<unknown>): Promise<void> {
  // What all recipients of one request share, kept once.
  await db.schema
    .createTable('message_contents')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('from_address', 'text', c => c.notNull())
    .addColumn('from_name', 'text')
    .addColumn('reply_to', 'text')
    .addColumn('subject', 'text', c => c.notNull())
    .addColumn('html', 'text')
    .addColumn('text', 'text')
    .addColumn('signing_domain_id', 'text')
    .addColumn('track_opens', 'integer', c => c.notNull())
    .addColumn('track_clicks', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createTable('messages')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('content_id', 'text', c => c.notNull().references('message_contents.id'))
    .addColumn('recipient', 'text', c => c.notNull())
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('reason', 'text')
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('sent_at', 'bigint')
    .addColumn('delivered_at', 'bigint')
    .addColumn('opened_at', 'bigint')
    .addColumn('clicked_at', 'bigint')
    .addColumn('bounced_at', 'bigint')
    .addColumn('complained_at', 'bigint')
    .addColumn('bounce_type', 'text')
    .execute()
  // Identifiers are UUIDv7, so this is the order of acceptance as well.
  await db.schema
    .createIndex('messages_by_workspace')
    .on('messages')
    .columns(['workspace_id', 'id'])
    .execute()
  await db.schema.createIndex('messages_by_content').on('messages').column('content_id').execute()
}

async function queue(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('queue')
    .addColumn('message_id', 'text', c => c.primaryKey().references('messages.id').onDelete('cascade'))
    .addColumn('workspace_id', 'text', c => c.notNull())
    // The recipient's domain as A-labels.
    .addColumn('destination', 'text', c => c.notNull())
    // 0 for mail somebody waits for, 1 for campaigns.
    .addColumn('priority', 'integer', c => c.notNull())
    // Destination, priority and workspace in one text: what takes turns, and what is asked for when due.
    .addColumn('lane', 'text', c => c.notNull())
    .addColumn('attempts', 'integer', c => c.notNull())
    .addColumn('next_attempt_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addColumn('is_held', 'integer', c => c.notNull())
    .addColumn('was_handed_over', 'integer', c => c.notNull())
    .addColumn('enqueued_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('queue_due')
    .on('queue')
    .columns(['lane', 'next_attempt_at', 'message_id'])
    .where(sql.ref('is_held'), '=', sql.lit(0))
    .execute()
  // For the operator, who works by destination.
  await db.schema
    .createIndex('queue_by_destination')
    .on('queue')
    .columns(['destination', 'message_id'])
    .execute()
  await db.schema
    .createTable('attempts')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('message_id', 'text', c => c.notNull().references('messages.id').onDelete('cascade'))
    .addColumn('number', 'integer', c => c.notNull())
    .addColumn('started_at', 'bigint', c => c.notNull())
    .addColumn('finished_at', 'bigint', c => c.notNull())
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('summary', 'text', c => c.notNull())
    .addColumn('reply_code', 'integer')
    .addColumn('status', 'text')
    .addColumn('classification', 'text')
    .addColumn('tried', 'text', c => c.notNull())
    .execute()
  await db.schema.createIndex('attempts_by_message').on('attempts').column('message_id').execute()
  await db.schema
    .createTable('captured_mails')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('message_id', 'text', c => c.notNull())
    .addColumn('captured_at', 'bigint', c => c.notNull())
    .addColumn('envelope_sender', 'text', c => c.notNull())
    .addColumn('recipient', 'text', c => c.notNull())
    .addColumn('subject', 'text', c => c.notNull())
    .addColumn('size', 'integer', c => c.notNull())
    .addColumn('raw', dialect === 'sqlite' ? 'blob' : 'bytea', c => c.notNull())
    .execute()
}

async function events(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('events')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('message_id', 'text')
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('occurred_at', 'bigint', c => c.notNull())
    .addColumn('payload', 'text', c => c.notNull())
    .execute()
  await db.schema
    .createTable('event_cursors')
    .addColumn('consumer', 'text', c => c.primaryKey())
    .addColumn('seq', 'bigint', c => c.notNull())
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
