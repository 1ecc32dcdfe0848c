/**
 * The rest of the email API: kept answers of repeated requests, batches, scheduled mail, attachments, the message log.
 *
 * What stands in a content's row is shared by all its messages; a message's own row grows by the campaign only.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await keptAnswers(db)
  await contents(db)
  await batches(db)
  await messageLog(db)
}

async function keptAnswers(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('kept_answers')
    // Digest of workspace, kind of key, method, path and Idempotency-Key.
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('body_hash', 'text', c => c.notNull())
    .addColumn('status', 'integer', c => c.notNull())
    .addColumn('value', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema.createIndex('kept_answers_by_age').on('kept_answers').column('created_at').execute()
}

async function contents(db: Kysely<unknown>): Promise<void> {
  const table = db.schema.alterTable('message_contents')
  // JSON {to, cc}: what the header shows; null where each recipient only sees itself.
  await table.addColumn('addressees', 'text').execute()
  // JSON: the caller's own header fields.
  await table.addColumn('headers', 'text').execute()
  // JSON: name, type and size of each; the octets stand in message_parts, one after the other.
  await table.addColumn('attachments', 'text').execute()
  // When it is to be sent; its id is then what stands for the request.
  await table.addColumn('scheduled_at', 'bigint').execute()
  await table.addColumn('batch_id', 'text').execute()
  // From 0.
  await table.addColumn('batch_index', 'integer').execute()
  await db.schema
    .createIndex('message_contents_by_batch')
    .on('message_contents')
    .columns(['batch_id', 'batch_index'])
    .where(sql.ref('batch_id'), 'is not', null)
    .execute()
}

async function batches(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('email_batches')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    // Batches of one key are released one after the other.
    .addColumn('key_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('total', 'integer', c => c.notNull())
    .addColumn('sent', 'integer', c => c.notNull())
    .addColumn('skipped', 'integer', c => c.notNull())
    .addColumn('failed', 'integer', c => c.notNull())
    // JSON: which were refused, and why.
    .addColumn('errors', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    // When its last message falls due.
    .addColumn('released_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('email_batches_by_key')
    .on('email_batches')
    .columns(['key_id', 'released_at'])
    .execute()
}

async function messageLog(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('messages').addColumn('campaign_id', 'text').execute()
  await db.schema
    .createIndex('messages_by_campaign')
    .on('messages')
    .columns(['campaign_id', 'id'])
    .where(sql.ref('campaign_id'), 'is not', null)
    .execute()
  await sql`create index messages_by_recipient on messages (workspace_id, lower(recipient), id)`.execute(db)
  // Where most messages are (sent, delivered), no index is needed to find some: it would only cost every message.
  await sql`create index messages_by_status on messages (workspace_id, status, id)
    where status not in ('sent', 'delivered')`.execute(db)
}
