/**
 * Webhooks: who is told of which events, what is told, and each attempt to tell it.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('webhook_subscriptions')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('event', 'text', c => c.notNull())
    .addColumn('target_url', 'text', c => c.notNull())
    // Sealed, both; the former one signs as well until the moment beside it.
    .addColumn('secret', 'text', c => c.notNull())
    .addColumn('former_secret', 'text')
    .addColumn('former_until', 'bigint')
    .addColumn('created_at', 'bigint', c => c.notNull())
    // Since when nothing but failures; null while the last attempt succeeded or none was made.
    .addColumn('failing_since', 'bigint')
    .addColumn('disabled_at', 'bigint')
    // failing or gone.
    .addColumn('disabled_reason', 'text')
    .addColumn('deleted_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('webhook_subscriptions_by_workspace')
    .on('webhook_subscriptions')
    .columns(['workspace_id', 'id'])
    .execute()
  await db.schema
    .createTable('webhook_payloads')
    // Of the event log: one body for all who are told of the event.
    .addColumn('event_seq', dialect === 'sqlite' ? 'integer' : 'bigint', c => c.primaryKey())
    .addColumn('event', 'text', c => c.notNull())
    .addColumn('body', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createTable('webhook_deliveries')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('subscription_id', 'text', c => c.notNull())
    .addColumn('event_seq', 'bigint', c => c.notNull())
    // pending, succeeded or failed.
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('attempts', 'integer', c => c.notNull())
    // Attempts before the last replay: the schedule begins anew with one.
    .addColumn('attempts_before', 'integer', c => c.notNull())
    .addColumn('next_attempt_at', 'bigint')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('finished_at', 'bigint')
    .$call(t => (dialect === 'sqlite' ? t.modifyEnd(sql`without rowid`) : t))
    .execute()
  await db.schema
    .createIndex('webhook_deliveries_by_subscription')
    .on('webhook_deliveries')
    .columns(['subscription_id', 'id'])
    .execute()
  await sql`create index webhook_deliveries_due on webhook_deliveries (subscription_id, next_attempt_at) where next_attempt_at is not null`.execute(
    db,
  )
  await db.schema
    .createTable('webhook_attempts')
    .addColumn('delivery_id', 'text', c => c.notNull())
    .addColumn('number', 'integer', c => c.notNull())
    .addColumn('started_at', 'bigint', c => c.notNull())
    .addColumn('duration_ms', 'integer', c => c.notNull())
    // 0 where there was no answer.
    .addColumn('status_code', 'integer', c => c.notNull())
    .addColumn('error', 'text')
    // The beginning of the answer's body.
    .addColumn('response', 'text')
    .addPrimaryKeyConstraint('webhook_attempts_pk', ['delivery_id', 'number'])
    .$call(t => (dialect === 'sqlite' ? t.modifyEnd(sql`without rowid`) : t))
    .execute()
}
