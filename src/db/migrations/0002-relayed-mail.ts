/**
 * Mail that came as finished octets (SMTP submission), and what its submitter asked to be told (RFC 3461).
 *
 * The queue row also gets what delivery needs of the message, so that claiming reads one table.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const octets = dialect === 'sqlite' ? 'blob' : 'bytea'
  const contents = db.schema.alterTable('message_contents')
  // The first part; longer mail goes on in message_parts.
  await contents.addColumn('raw', octets).execute()
  // Of all parts together; null where the content is composed.
  await contents.addColumn('raw_size', 'integer').execute()
  // Who is told of failures: the envelope sender as it was submitted; empty for nobody.
  await contents.addColumn('submitter', 'text').execute()
  await contents.addColumn('dsn_ret', 'text').execute()
  await contents.addColumn('dsn_envid', 'text').execute()
  await contents.addColumn('tags', 'text').execute()
  await db.schema
    .createTable('message_parts')
    .addColumn('content_id', 'text', c => c.notNull())
    .addColumn('part', 'integer', c => c.notNull())
    .addColumn('octets', octets, c => c.notNull())
    .addPrimaryKeyConstraint('message_parts_pk', ['content_id', 'part'])
    .execute()
  const messages = db.schema.alterTable('messages')
  await messages.addColumn('dsn_notify', 'text').execute()
  await messages.addColumn('dsn_orcpt', 'text').execute()
  const queue = db.schema.alterTable('queue')
  await queue.addColumn('content_id', 'text', c => c.notNull().defaultTo('')).execute()
  await queue.addColumn('recipient', 'text', c => c.notNull().defaultTo('')).execute()
  await sql`update queue set
    content_id = (select m.content_id from messages m where m.id = queue.message_id),
    recipient = (select m.recipient from messages m where m.id = queue.message_id)`.execute(db)
}
