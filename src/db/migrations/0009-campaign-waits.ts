/** Since when a campaign has waited, and for which of the reasons `campaign.waiting` was sent. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [
    'alter table campaigns add column waiting_since bigint',
    'alter table campaigns add column waiting_announced text',
    "create index campaigns_under_way on campaigns (seq) where status in ('sending', 'paused')",
  ])
    await sql.raw(statement).execute(db)
}
