/** SQL of segment rules on campaign activity: who received, opened or clicked one. Limited by retention of `campaign_recipients`. */
import { sql, type RawBuilder } from 'kysely'
import type { CampaignField, CampaignHistory } from '../../audience/segments/rule-history.js'

const HAS: Readonly<Record<CampaignField, RawBuilder<boolean>>> = {
  campaign_received: sql<boolean>`recipients.status in ('delivered', 'opened', 'clicked')`,
  campaign_opened: sql<boolean>`recipients.has_opened = 1`,
  campaign_clicked: sql<boolean>`recipients.has_clicked = 1`,
}

export const campaignHistory: CampaignHistory = {
  isAmong(field, workspaceId, ids, range) {
    const named = ids === undefined ? sql`` : sql`and id in (${sql.join(ids)})`
    const isMeant = sql`recipients.campaign in (
      select seq from campaigns where workspace_id = ${workspaceId} ${named}) and ${HAS[field]}`
    return range
      ? sql<boolean>`seq in (select contact from campaign_recipients as recipients
          where ${isMeant} and contact between ${range.first} and ${range.last})`
      : sql<boolean>`exists (select 1 from campaign_recipients as recipients
          where ${isMeant} and recipients.contact = contacts.seq)`
  },
  async findKnown(db, workspaceId, ids) {
    if (ids.length === 0) return []
    const rows = await db
      .selectFrom('campaigns')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('id', 'in', ids)
      .execute()
    return rows.map(({ id }) => id)
  },
}
