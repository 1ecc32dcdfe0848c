/** Mail that is filled in for each recipient: what its content has for all of them, and what a message has of its own. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // JSON; null where the mail leaves as it stands.
  await db.schema.alterTable('message_contents').addColumn('merging', 'text').execute()
  // JSON; null where the message has nothing of its own.
  await db.schema.alterTable('messages').addColumn('merge_data', 'text').execute()
}
