/**
 * A paused campaign holds its queued mail: one row for each campaign that is or was held, and lanes of their own for campaigns, so that
 * holding a hundred thousand messages changes one row. Campaigns that are paused already hold what they have in the queue.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('campaign_holds')
    .addColumn('campaign_id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    // Since when; null once it was released.
    .addColumn('held_at', 'bigint')
    // How long it was held before, ms: mail does not expire meanwhile.
    .addColumn('held_ms', 'bigint', c => c.notNull())
    .execute()
  await sql`insert into campaign_holds (campaign_id, workspace_id, held_at, held_ms)
    select id, workspace_id, updated_at, 0 from campaigns where status = 'paused' and is_sandbox = 0`.execute(
    db,
  )
  await sql`update queue set lane = lane || ' ' ||
      (select campaign_id from message_contents where message_contents.id = queue.content_id)
    where exists (select 1 from message_contents
      where message_contents.id = queue.content_id and campaign_id is not null)`.execute(db)
}
