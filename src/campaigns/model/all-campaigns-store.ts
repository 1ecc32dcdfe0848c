/** SQL of campaigns across workspaces, for operators. */
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { Campaign } from './campaign.js'
import { campaignFromRow } from './campaign-store.js'

export interface OfWorkspaces {
  /** Undefined: of all that exist. */
  readonly workspaceId: string | undefined
  /** Only those whose A/B test waits for a person. */
  readonly awaitsWinner: boolean
  /** Only those that are sent and were seen to wait (`sending/announce-waits.ts`). */
  readonly isWaiting: boolean
}

/** Without those of sandboxes, newest first. */
export async function listCampaignsOfAll(
  db: Queries,
  { workspaceId, awaitsWinner, isWaiting }: OfWorkspaces,
  page: Page,
): Promise<Listing<Campaign>> {
  let matching = db
    .selectFrom('campaigns')
    .where('is_sandbox', '=', 0)
    .where('workspace_id', 'in', e => e.selectFrom('workspaces').select('id').where('deleted_at', 'is', null))
  if (workspaceId !== undefined) matching = matching.where('workspace_id', '=', workspaceId)
  if (isWaiting) matching = matching.where('status', '=', 'sending').where('waiting_since', 'is not', null)
  if (awaitsWinner)
    matching = matching
      .where('status', 'in', ['sending', 'paused'])
      .where('seq', 'in', e =>
        e
          .selectFrom('campaign_tests')
          .select('campaign')
          .where('winner', 'is', null)
          .where('sampled_at', 'is not', null)
          .where('decide_at', 'is', null),
      )
  return newestFirst(matching, page, campaignFromRow)
}
