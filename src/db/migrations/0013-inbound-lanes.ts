/**
 * Mail with a token of ours apart from all other that comes in, how much of it is kept, and domains that DNS denied.
 *
 * Mail of before, and what of it waits, counts as mail without a token: that only says in which line it stands.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .alterTable('inbound_mails')
    // Whether each of its recipients was an address signed by us.
    .addColumn('is_signed', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  await db.schema.dropIndex('inbound_mails_waiting').execute()
  await db.schema
    .createIndex('inbound_mails_waiting')
    .on('inbound_mails')
    .columns(['is_signed', 'seq', 'size'])
    .where(sql.ref('processed_at'), 'is', null)
    .execute()
  // With the size, so that the octets of all are added up without reading a row.
  await db.schema.dropIndex('inbound_mails_processed').execute()
  await db.schema
    .createIndex('inbound_mails_processed')
    .on('inbound_mails')
    .columns(['is_signed', 'processed_at', 'size'])
    .where(sql.ref('processed_at'), 'is not', null)
    .execute()
  await deniedDomains(db, dialect)
}

/** Bounces for which one answer about a whole domain is all there is, until it is known whether to believe it. */
async function deniedDomains(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('domain_denials')
    .$call(t =>
      dialect === 'sqlite'
        ? t.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
        : t.addColumn('seq', 'bigserial', c => c.primaryKey()),
    )
    .addColumn('domain', 'text', c => c.notNull())
    .addColumn('denied_at', 'bigint', c => c.notNull())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('email', 'text', c => c.notNull())
    // Once per message, however often it is told.
    .addColumn('message_id', 'text', c => c.notNull().unique())
    // Whether our own resolver said so; otherwise another server did.
    .addColumn('is_ours', 'integer', c => c.notNull())
    // counts or discredited; null until it is judged.
    .addColumn('verdict', 'text')
    .execute()
  await db.schema
    .createIndex('domain_denials_by_domain')
    .on('domain_denials')
    .columns(['domain', 'denied_at'])
    .execute()
  await db.schema
    .createIndex('domain_denials_by_time')
    .on('domain_denials')
    .columns(['denied_at', 'domain'])
    .execute()
  await db.schema
    .createIndex('domain_denials_unjudged')
    .on('domain_denials')
    .column('denied_at')
    .where(sql.ref('verdict'), 'is', null)
    .execute()
}
