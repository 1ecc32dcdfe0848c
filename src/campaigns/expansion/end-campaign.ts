/** Starts, completes, fails and cancels campaigns. Each does nothing if the status has changed meanwhile. Called by the runner. */
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { cancelQueued } from '../../queue/operator/queue-admin-store.js'
import { deleteHold } from '../../queue/claiming/campaign-hold-store.js'
import { endTest } from '../model/variant-store.js'
import { insertPage } from '../archive/page-store.js'
import { type Campaign, statusAfter } from '../model/campaign.js'
import { changeCampaign, findCampaignBySeq } from '../model/campaign-store.js'
import { deleteLetter } from '../model/letter-store.js'
import { aboutCampaign, statsFields } from '../model/campaign-stats.js'
import { cancelPending, listSent, updateRecipients } from '../model/recipient-store.js'

/** Starts a campaign whose time has come and whose recipients all have rows. */
export async function begin(tx: Tx, seq: number, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  const status = campaign && statusAfter(campaign.status, 'begin')
  if (!campaign || status === undefined || campaign.startedAt !== null) return
  await changeCampaign(tx.db, seq, { status, startedAt: now, nextAt: now })
  // With an A/B test, once there is a winner.
  if (campaign.isArchived && !campaign.abTest) await insertPage(tx.db, campaign, now)
  await appendEvents(tx, [{ kind: 'campaign.sent', ...aboutCampaign(campaign, now) }])
}

/** Fallback interval of the completion check; settling the last mail triggers it at once. */
const SETTLING_RECHECK_MS = 60_000

/** Completes a campaign without pending recipients, or schedules the next check. */
export async function completeOrWait(tx: Tx, seq: number, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  if (campaign?.status !== 'sending' || campaign.pending > 0) return
  const status = statusAfter(campaign.status, 'complete')
  if (campaign.queued > 0 || status === undefined) {
    await changeCampaign(tx.db, seq, { nextAt: now + SETTLING_RECHECK_MS })
    return
  }
  await changeCampaign(tx.db, seq, { status, finishedAt: now, nextAt: null })
  await deleteHold(tx.db, campaign.id)
  await deleteLetter(tx.db, seq)
  if (campaign.abTest) await endTest(tx.db, seq)
  const { payload, ...head } = aboutCampaign(campaign, now)
  await appendEvents(tx, [
    { kind: 'campaign.completed', ...head, payload: { ...payload, stats: statsFields(campaign) } },
  ])
}

/** Fails a campaign; its pending recipients are cancelled later. @param error shown to the user */
export async function fail(tx: Tx, seq: number, error: string, now: number): Promise<void> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  const status = campaign && statusAfter(campaign.status, 'fail')
  if (!campaign || status === undefined) return
  await changeCampaign(tx.db, seq, { status, error, finishedAt: now, nextAt: now })
  await deleteHold(tx.db, campaign.id)
}

const CANCELLED = 'the campaign was cancelled'

/**
 * Cancels the next batch of a cancelled campaign's queued mail. Mail being delivered is left alone; its row awaits the result.
 *
 * @param after last contact processed @returns the last contact of this batch; undefined if it was the last batch
 */
export async function cancelQueuedSome(
  tx: Tx,
  seq: number,
  after: number,
  limit: number,
  now: number,
): Promise<number | undefined> {
  const sent = await listSent(tx.db, seq, after, limit)
  const ids = sent.flatMap(({ messageId }) => messageId ?? [])
  const gone = ids.length === 0 ? new Set<string>() : await cancelQueued(tx, ids, now, CANCELLED)
  const cancelled = sent.filter(({ messageId }) => messageId !== null && gone.has(messageId))
  await updateRecipients(
    tx.db,
    cancelled.map(one => ({ ...one, status: 'cancelled' })),
  )
  const count = cancelled.length
  await changeCampaign(tx.db, seq, {}, { queued: -count, cancelled: count })
  return sent.length < limit ? undefined : sent.at(-1)?.contact
}

/**
 * Cancels the next batch of pending recipients. The last batch ends the hold. Mail still queued then was being delivered; it is marked
 * cancelled and dropped when it is next claimed.
 *
 * @returns whether that was the last batch
 */
export async function cancelSome(tx: Tx, { seq, id, abTest }: Campaign, limit: number): Promise<boolean> {
  const count = await cancelPending(tx.db, seq, limit)
  const isAll = count < limit
  await changeCampaign(tx.db, seq, isAll ? { nextAt: null } : {}, { pending: -count, cancelled: count })
  if (!isAll) return false
  await deleteHold(tx.db, id)
  await deleteLetter(tx.db, seq)
  if (abTest) await endTest(tx.db, seq)
  return true
}
