/**
 * Indexes for lists of what grows over the years: bounces, suppressions and the activity log, asked for by field.
 *
 * A list counts all that match. With the fields it may ask for in the index, it counts without reading a row. None of them
 * is on a table that every message writes to.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('bounces_by_workspace').execute()
  await db.schema
    .createIndex('bounces_by_workspace')
    .on('bounces')
    .columns(['workspace_id', 'created_at', 'id', 'type', 'subtype'])
    .execute()
  // In the order of the list to its end: else the index above, which has that order, is taken in its place.
  await db.schema.dropIndex('bounces_by_email').execute()
  await db.schema
    .createIndex('bounces_by_email')
    .on('bounces')
    .columns(['workspace_id', 'email', 'created_at', 'id'])
    .execute()
  await db.schema
    .createIndex('bounces_by_campaign')
    .on('bounces')
    .columns(['workspace_id', 'campaign_id', 'created_at', 'id', 'type', 'subtype'])
    .where(sql.ref('campaign_id'), 'is not', null)
    .execute()
  await db.schema.dropIndex('suppressions_by_workspace').execute()
  await db.schema
    .createIndex('suppressions_by_workspace')
    .on('suppressions')
    // The fields come last: were they first, the look at acceptance whether an address is suppressed would be taken to them.
    .columns(['workspace_id', 'seq', 'reason', 'scope'])
    .execute()
  await db.schema
    .createIndex('activities_by_action')
    .on('activities')
    .columns(['workspace_id', 'action', 'seq'])
    .execute()
}
