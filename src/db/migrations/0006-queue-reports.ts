/** What the submitter asked to be told (RFC 3461 §4.1) is known where delivery ends, without a look at the message. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('queue').addColumn('dsn_notify', 'text').execute()
  await sql`update queue set
    dsn_notify = (select m.dsn_notify from messages m where m.id = queue.message_id)`.execute(db)
}
