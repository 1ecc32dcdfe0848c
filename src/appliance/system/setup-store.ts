/** SQL of the setup checklist: what a workspace has of what it needs to send its first campaign, as one statement. */
import type { Queries } from '../../db/database.js'

export interface SetupFacts {
  readonly companyName: string | null
  readonly companyAddress: string | null
  /** A domain that may send; null if there is none. */
  readonly verifiedDomain: string | null
  /** The newest domain that still lacks its records. */
  readonly pendingDomainId: string | null
  readonly keyId: string | null
  /** The newest message, with its status. */
  readonly messageId: string | null
  readonly messageStatus: string | null
  readonly contacts: number
  /** The newest campaign that was sent or is on its way. */
  readonly sentCampaignId: string | null
  readonly draftCampaignId: string | null
  readonly dismissedAt: number | null
}

/** @returns undefined for an unknown or removed workspace */
export async function readSetup(db: Queries, workspaceId: string): Promise<SetupFacts | undefined> {
  const row = await db
    .selectFrom('workspaces')
    .where('workspaces.id', '=', workspaceId)
    .where('workspaces.deleted_at', 'is', null)
    .select(query => {
      const domains = query
        .selectFrom('domains')
        .where('owner', '=', workspaceId)
        .where('is_sandbox', '=', 0)
        .where('removed_at', 'is', null)
      const message = query
        .selectFrom('messages')
        .where('workspace_id', '=', workspaceId)
        .orderBy('messages.id', 'desc')
        .limit(1)
      const campaigns = query
        .selectFrom('campaigns')
        .where('workspace_id', '=', workspaceId)
        .orderBy('campaigns.seq', 'desc')
        .limit(1)
      return [
        'company_name',
        'company_address',
        'setup_dismissed_at',
        domains
          .where(of => of.or([of('verified_at', 'is not', null), of('is_vouched', '=', 1)]))
          .select('domain')
          .orderBy('domain')
          .limit(1)
          .as('verified_domain'),
        domains
          .where('verified_at', 'is', null)
          .where('is_vouched', '=', 0)
          .select('domains.id')
          .orderBy('domains.id', 'desc')
          .limit(1)
          .as('pending_domain'),
        query
          .selectFrom('api_keys')
          .where('workspace_id', '=', workspaceId)
          .where('revoked_at', 'is', null)
          .select('api_keys.id')
          .orderBy('api_keys.id', 'desc')
          .limit(1)
          .as('key_id'),
        message.select('messages.id').as('message_id'),
        message.select('messages.status').as('message_status'),
        query
          .selectFrom('audiences')
          .where('workspace_id', '=', workspaceId)
          .select('audiences.contacts')
          .as('contacts'),
        campaigns.where('status', '!=', 'draft').select('campaigns.id').as('sent_campaign'),
        campaigns.where('status', '=', 'draft').select('campaigns.id').as('draft_campaign'),
      ]
    })
    .executeTakeFirst()
  return (
    row && {
      companyName: row.company_name,
      companyAddress: row.company_address,
      verifiedDomain: row.verified_domain,
      pendingDomainId: row.pending_domain,
      keyId: row.key_id,
      messageId: row.message_id,
      messageStatus: row.message_status,
      contacts: row.contacts ?? 0,
      sentCampaignId: row.sent_campaign,
      draftCampaignId: row.draft_campaign,
      dismissedAt: row.setup_dismissed_at,
    }
  )
}

/** @param at ms since epoch; null shows the checklist again */
export async function setSetupDismissed(db: Queries, workspaceId: string, at: number | null): Promise<void> {
  await db
    .updateTable('workspaces')
    .set({ setup_dismissed_at: at })
    .where('id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .execute()
}
