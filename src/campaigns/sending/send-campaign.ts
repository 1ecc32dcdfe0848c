/**
 * Sends or schedules a campaign: fixes its content and audience; the runner does the rest.
 *
 * Called by the route. The audience is counted before the transaction. If sent now, recipient rows are created next (`expansion/`) from the
 * contacts that exist now; a scheduled campaign's audience is evaluated at its start, and the counts are estimates until then.
 * Fails: AppError not_found, conflict, missing_from_email, template_not_found, domain_invalid, invalid_schedule, unavailable.
 */
import { keepAnswer } from '../../accounts/idempotency-store.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { IdempotencyClaim } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import { checkSendAt, readSendAt } from '../../msa/rest/send-email.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import { changeCampaign } from '../model/campaign-store.js'
import { findCampaignData, insertLetter } from '../model/letter-store.js'
import { logAct, requireAct, requireCampaign } from '../model/campaigns.js'
import { variantName, withVariant, type VariantName } from '../model/ab-test.js'
import { insertTest } from '../model/variant-store.js'
import type { Campaign } from '../model/campaign.js'
import { contentOf, lettersOf, makeLetter, type Letter } from '../model/letter.js'
import {
  contactsAsOf,
  countAudience,
  findCampaignAudience,
  type CountedAudience,
} from '../model/campaign-audience.js'
import { readRecipientFields } from '../../msa/rest/address-fields.js'
import { shownSender } from '../../msa/sender.js'
import { submitAll } from '../../msa/submit.js'

/** Recipients per batch, as the response counts them. */
const BATCH = 1_000

export interface SendAnswer {
  readonly total_recipients: number
  readonly batches_queued: number
  readonly excluded: { readonly unsubscribed: number; readonly bounced: number; readonly suppressed: number }
  readonly status: 'sending' | 'scheduled'
  readonly scheduled_at: string | null
}

export async function sendCampaign(
  { send }: CampaignParts,
  principal: Principal,
  id: string,
  sendAtText: string | undefined,
  claim: IdempotencyClaim | undefined,
): Promise<SendAnswer> {
  const { database, clock, senders } = send
  const { workspaceId } = principal
  const now = clock.now()
  const scheduledAt = readSendAt(sendAtText)
  const act = scheduledAt === undefined ? 'send' : 'schedule'
  const seen = await requireCampaign(database.reader, workspaceId, id)
  requireAct(seen, act)
  const workspace = await senders.workspace(workspaceId)
  const data = await findCampaignData(database.reader, seen.seq)
  const letters = await lettersOf(database.reader, workspace, seen, data)
  for (const letter of letters) await contentOf(senders, workspace, letter, seen.id)
  requireTracked(seen, letters)
  checkSendAt(scheduledAt, now)
  const who = await findCampaignAudience(database.reader, seen)
  const counted = await countAudience(database, clock, workspaceId, who)
  database.storage.requireRoom()
  return database.write(async tx => {
    const campaign = await requireCampaign(tx.db, workspaceId, id)
    const status = requireAct(campaign, act)
    if (campaign.updatedAt !== seen.updatedAt)
      throw new AppError('conflict', 'the campaign was changed meanwhile; try again')
    const { mailable: recipients, ...excluded } = counted
    await changeCampaign(
      tx.db,
      campaign.seq,
      {
        status,
        updatedAt: now,
        ...(scheduledAt === undefined
          ? { nextAt: now, who, ...(await contactsAsOf(tx.db, workspaceId, now)) }
          : { nextAt: scheduledAt, scheduledAt }),
      },
      { recipients, ...excluded },
    )
    // With an A/B test, the campaign's own letter is that of the winner.
    if (campaign.abTest) await insertTest(tx.db, campaign.seq, letters)
    else for (const letter of letters) await insertLetter(tx.db, campaign.seq, letter)
    await logAct(tx, campaign, principal.actor, 'sent', now)
    const value = answerOf(counted, scheduledAt)
    await keepAnswer(tx.db, claim, { status: 202, value })
    return value
  })
}

/** @throws AppError validation_error if nobody would ever be counted */
function requireTracked({ abTest }: Campaign, letters: readonly Letter[]): void {
  if (!abTest || abTest.decideAfterMinutes === null) return
  const isTracked = ({ trackClicks, trackOpens }: Letter) =>
    abTest.metric === 'clicks' ? trackClicks : trackOpens
  if (letters.every(isTracked)) return
  throw new AppError(
    'validation_error',
    `the winner cannot be decided by ${abTest.metric}, since ${abTest.metric} are not tracked`,
    { path: 'ab_test.metric' },
  )
}

function answerOf(
  { mailable, unsubscribed, bounced, suppressed }: CountedAudience,
  scheduledAt: number | undefined,
): SendAnswer {
  return {
    total_recipients: mailable,
    batches_queued: Math.ceil(mailable / BATCH),
    excluded: { unsubscribed, bounced, suppressed },
    status: scheduledAt === undefined ? 'sending' : 'scheduled',
    scheduled_at: scheduledAt === undefined ? null : isoTime(scheduledAt),
  }
}

export async function sendTest(
  { send }: CampaignParts,
  principal: Principal,
  id: string,
  to: string | readonly string[],
  variant: VariantName | undefined,
) {
  const { database, clock, newId, senders } = send
  const campaign = await requireCampaign(database.reader, principal.workspaceId, id)
  const { recipients } = readRecipientFields({ to })
  // Includes everything marketing mail has, such as an unsubscribe link.
  const workspace = { ...(await senders.workspace(principal.workspaceId)), isMarketing: true }
  const data = await findCampaignData(database.reader, campaign.seq)
  const letter = await makeLetter(database.reader, workspace, asVariant(campaign, variant), data)
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

/** @param variant undefined: the first @throws AppError validation_error */
function asVariant(campaign: Campaign, variant: VariantName | undefined): Campaign {
  const variants = campaign.abTest?.variants ?? []
  if (variant === undefined) return withVariant(campaign, variants[0])
  const found = variants.find((_, at) => variantName(at) === variant)
  if (found) return withVariant(campaign, found)
  throw new AppError('validation_error', `the campaign has no variant ${variant}`, { path: 'variant' })
}
