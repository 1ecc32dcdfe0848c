/** Unfinished campaigns (scheduled, sending, paused) that use a list, segment or template. */
import type { ReferenceHolder } from '../../resource/references.js'
import { findUnfinishedUsing } from './campaign-store.js'

const COLUMNS = { list: 'list_id', segment: 'segment_id', template: 'template_id' } as const

export const campaignReferences: ReferenceHolder = {
  async findUses(db, { kind, workspaceId, id }) {
    if (kind !== 'list' && kind !== 'segment' && kind !== 'template') return []
    const campaigns = await findUnfinishedUsing(db, workspaceId, COLUMNS[kind], id)
    return campaigns.map(campaign => ({
      what: `${campaign.status} campaign`,
      id: campaign.id,
      name: campaign.name,
    }))
  },
}
