/** SQL of campaign retention: deletes recipients and clicks of old campaigns; the campaigns and their counts stay. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { deleteClicks } from './link-store.js'

/** @returns how many rows were deleted, at most `limit`; 0 if nothing is old */
export async function forgetRecipients(db: Queries, before: number, limit: number): Promise<number> {
  const oldest = await db
    .selectFrom('campaigns')
    .select('seq')
    .where('finished_at', '<', before)
    .where('recipients_pruned_at', 'is', null)
    .orderBy('finished_at')
    .limit(1)
    .executeTakeFirst()
  if (!oldest) return 0
  const { seq } = oldest
  const clicks = await deleteClicks(db, seq, limit)
  if (clicks > 0) return clicks
  const result = await sql`
    delete from campaign_recipients where campaign = ${seq} and contact in (
      select contact from campaign_recipients where campaign = ${seq} order by contact limit ${limit})`.execute(
    db,
  )
  const recipients = Number(result.numAffectedRows ?? 0n)
  if (recipients > 0) return recipients
  await db.updateTable('campaigns').set({ recipients_pruned_at: before }).where('seq', '=', seq).execute()
  return 1
}
