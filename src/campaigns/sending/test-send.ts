/**
 * Sends a campaign's email to a few test addresses.
 *
 * It counts towards the sending limits and the key's rate limit like a single send; opens and clicks are not attributed to the campaign.
 * Fails: AppError, as single sends do.
 */
import type { Principal } from '../../http/principal.js'
import { readRecipientFields } from '../../msa/rest/address-fields.js'
import { shownSender } from '../../msa/sender.js'
import { submitAll } from '../../msa/submit.js'
import type { CampaignParts } from '../campaign-parts.js'
import { requireCampaign } from '../records/campaigns.js'
import { contentOf, makeLetter } from './letter.js'

export async function sendTest(
  { send }: CampaignParts,
  principal: Principal,
  id: string,
  to: string | readonly string[],
) {
  const { database, clock, newId, senders } = send
  const campaign = await requireCampaign(database.reader, principal.workspaceId, id)
  const { recipients } = readRecipientFields({ to })
  // Includes everything marketing mail has, such as an unsubscribe link.
  const workspace = { ...(await senders.workspace(principal.workspaceId)), isMarketing: true }
  const letter = await makeLetter(database.reader, workspace, campaign)
  const content = await contentOf(senders, workspace, letter, newId())
  database.storage.requireRoom()
  const now = clock.now()
  const batch = {
    workspace,
    isSandbox: principal.isSandbox,
    submissions: [{ content, to: recipients, key: principal }],
  }
  const [sorted = []] = await database.write(tx => submitAll(tx, send, batch, now))
  const sent = sorted.filter(({ skip }) => skip === null).length
  return {
    sent,
    failed: 0,
    skipped: sorted.length - sent,
    total: sorted.length,
    ...shownSender(content, letter.author),
    results: sorted.map(({ address, messageId, skip }) => ({
      to: address,
      message_id: messageId,
      success: skip === null,
      ...(skip === null ? {} : { reason: skip }),
    })),
  }
}
