/**
 * Feeds know the date of the newest item they sent, and recognize items by more than their ids; attempts of webhooks say which program made them.
 *
 * The items of feeds that were read before are known by their ids only, so feeds are read in full once more: their validators are forgotten.
 */
import { sql, type Kysely } from 'kysely'

const STATEMENTS = [
  // Ms since epoch UTC. Null: it sent no item with a date.
  'alter table feeds add column newest_sent_at bigint',
  // When it was last read by a version that remembered items by their ids only; null: by all their keys.
  'alter table feeds add column ids_only_until bigint',
  'update feeds set etag = null, last_modified = null, ids_only_until = (select max(seen_at) from feed_items where feed = feeds.seq)',
  // User-Agent that was sent. Null: the attempt was made before this migration.
  'alter table webhook_attempts add column user_agent text',
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  const { rows } = await sql<{ feed: number; sent_at: number; data: string }>`
    select r.feed, r.ended_at as sent_at, d.data from feed_runs as r
      join campaigns as c on c.id = r.campaign_id
      join campaign_data as d on d.campaign = c.seq
    where r.seq in (select max(seq) from feed_runs where status = 'sent' group by feed)`.execute(db)
  for (const { feed, sent_at: sentAt, data } of rows) {
    const dates = datesIn(data).filter(date => date <= sentAt)
    if (dates.length > 0)
      await sql`update feeds set newest_sent_at = ${Math.max(...dates)} where seq = ${feed}`.execute(db)
  }
}

/** @param data values of merge tags, JSON */
function datesIn(data: string): number[] {
  const { items = [] } = JSON.parse(data) as { readonly items?: readonly { readonly date_iso?: string }[] }
  return items.map(({ date_iso: date = '' }) => Date.parse(date)).filter(date => !Number.isNaN(date))
}
