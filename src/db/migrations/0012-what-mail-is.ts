/**
 * What a mail is (marketing or not, campaign, automation, template, contact) stands with it; a delivery that is under way can
 * be taken back; an event that a consumer cannot take is set aside.
 */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const contents = () => db.schema.alterTable('message_contents')
  await contents()
    .addColumn('is_marketing', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  for (const column of ['campaign_id', 'automation_id', 'template_id'])
    await contents().addColumn(column, 'text').execute()
  await db.schema.alterTable('messages').addColumn('contact_id', 'text').execute()
  // All mail of the workspace is marketing.
  await db.schema
    .alterTable('workspaces')
    .addColumn('is_marketing', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  // The operator wants it gone; the attempt under way tells whether it still can be.
  await db.schema
    .alterTable('queue')
    .addColumn('is_withdrawn', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  await setAsideEvents(db)
}

async function setAsideEvents(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('set_aside_events')
    .addColumn('consumer', 'text', c => c.notNull())
    .addColumn('seq', 'bigint', c => c.notNull())
    // JSON: the whole event, for the log does not keep it for ever.
    .addColumn('event', 'text', c => c.notNull())
    .addColumn('error', 'text', c => c.notNull())
    .addColumn('set_aside_at', 'bigint', c => c.notNull())
    // By hand: it is to be tried once more.
    .addColumn('is_retry_wanted', 'integer', c => c.notNull())
    .addPrimaryKeyConstraint('set_aside_events_pk', ['consumer', 'seq'])
    .execute()
}
