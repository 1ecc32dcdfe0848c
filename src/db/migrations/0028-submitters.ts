/**
 * Who handed a content in: the key, so that a leaked key's mail can be found, and the client's address. Mail from before says
 * neither.
 */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('message_contents').addColumn('key_id', 'text').execute()
  await db.schema.alterTable('message_contents').addColumn('peer', 'text').execute()
}
