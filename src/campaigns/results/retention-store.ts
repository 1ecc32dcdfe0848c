/**
 * SQL of the retention of campaigns: who the recipients of an old one were is forgotten; the campaign and its counts stay.
 *
 * Run by the job of retention, along an index of those that ended. Fails: as the database does.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { deleteClicks } from './link-store.js'

/** @param limit rows at most @returns how many went; 0 where nothing is old */
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
