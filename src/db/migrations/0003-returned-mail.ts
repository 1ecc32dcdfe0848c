/**
 * Mail that comes back and what is learnt from it: inbound mail as it arrived, bounces, reports about domains.
 *
 * What arrived is kept apart from what became of it, so that noting the result does not write the octets a second time.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await inboundMails(db, dialect)
  await bounces(db)
  await domainReports(db)
  await db.schema
    .createIndex('suppressions_by_workspace')
    .on('suppressions')
    .columns(['workspace_id', 'seq'])
    .execute()
}

async function inboundMails(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('inbound_mails')
    .$call(t => sequenceKey(t, dialect))
    // Of its octets in inbound_parts.
    .addColumn('body_id', 'text', c => c.notNull().unique())
    .addColumn('received_at', 'bigint', c => c.notNull())
    .addColumn('session', 'text', c => c.notNull())
    .addColumn('peer_address', 'text', c => c.notNull())
    .addColumn('helo_name', 'text', c => c.notNull())
    .addColumn('envelope_sender', 'text', c => c.notNull())
    // JSON: each one's address, purpose and, where it was signed, message.
    .addColumn('recipients', 'text', c => c.notNull())
    .addColumn('size', 'integer', c => c.notNull())
    // How often its reading ended the thread that read it.
    .addColumn('tries', 'integer', c => c.notNull())
    .addColumn('processed_at', 'bigint')
    // In a word or two, for lists.
    .addColumn('result', 'text')
    // JSON: what became of it, for each recipient.
    .addColumn('findings', 'text')
    .execute()
  await db.schema
    .createIndex('inbound_mails_waiting')
    .on('inbound_mails')
    .column('seq')
    .where(sql.ref('processed_at'), 'is', null)
    .execute()
  await db.schema
    .createIndex('inbound_mails_processed')
    .on('inbound_mails')
    .column('processed_at')
    .where(sql.ref('processed_at'), 'is not', null)
    .execute()
  await db.schema
    .createTable('inbound_parts')
    .addColumn('body_id', 'text', c => c.notNull())
    // From 0.
    .addColumn('part', 'integer', c => c.notNull())
    .addColumn('octets', dialect === 'sqlite' ? 'blob' : 'bytea', c => c.notNull())
    .addPrimaryKeyConstraint('inbound_parts_pk', ['body_id', 'part'])
    .execute()
}

async function bounces(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('bounces')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    // Once per message, however often it comes back.
    .addColumn('message_id', 'text', c => c.notNull().unique())
    .addColumn('email', 'text', c => c.notNull())
    .addColumn('contact_id', 'text')
    .addColumn('campaign_id', 'text')
    .addColumn('type', 'text', c => c.notNull())
    .addColumn('subtype', 'text', c => c.notNull())
    .addColumn('cause', 'text', c => c.notNull())
    .addColumn('scope', 'text', c => c.notNull())
    .addColumn('smtp_status', 'text', c => c.notNull())
    .addColumn('diagnostic_code', 'text', c => c.notNull())
    .addColumn('isp_name', 'text')
    .addColumn('remote_mta', 'text')
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('bounces_by_workspace')
    .on('bounces')
    .columns(['workspace_id', 'created_at', 'id'])
    .execute()
  await db.schema.createIndex('bounces_by_email').on('bounces').columns(['workspace_id', 'email']).execute()
}

async function domainReports(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('domain_reports')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('domain', 'text', c => c.notNull())
    .addColumn('org_name', 'text', c => c.notNull())
    .addColumn('report_id', 'text', c => c.notNull())
    .addColumn('begin_at', 'bigint', c => c.notNull())
    .addColumn('end_at', 'bigint', c => c.notNull())
    .addColumn('received_at', 'bigint', c => c.notNull())
    // JSON: policy and totals.
    .addColumn('summary', 'text', c => c.notNull())
    // JSON: one entry per record.
    .addColumn('records', 'text', c => c.notNull())
    .addUniqueConstraint('domain_reports_once', ['domain', 'kind', 'org_name', 'report_id'])
    .execute()
  await db.schema
    .createIndex('domain_reports_by_time')
    .on('domain_reports')
    .columns(['domain', 'begin_at'])
    .execute()
  await db.schema.createIndex('domain_reports_received').on('domain_reports').column('received_at').execute()
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
