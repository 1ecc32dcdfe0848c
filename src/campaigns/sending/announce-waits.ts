/**
 * Appends `campaign.waiting` for each campaign that has waited for a minute: once for each reason of a wait.
 *
 * A job of every minute. A wait begins when the job first sees it, and ends with the next mail that is queued, a pause or a resume. A campaign
 * with a rate of its own waits between any two of its mails: of these only rates of fewer than one a minute count, and as one wait.
 * Sandboxes and campaigns that are scheduled are left out.
 */
import { appendEvents } from '../../events/store.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import type { Waiting } from '../../core/waiting.js'
import { waitingToApi } from '../../http/answer/waiting-for.js'
import type { Campaign } from '../model/campaign.js'
import { changeCampaign, findCampaignBySeq, listUnderWay } from '../model/campaign-store.js'
import { aboutCampaign } from '../model/campaign-stats.js'
import { findWaits } from './find-waits.js'

const LASTS_MS = 60_000
const LIST_SIZE = 100
const RATE_OF_ONE_A_MINUTE = 60

export async function announceWaits(parts: CampaignParts, stopping: AbortSignal): Promise<void> {
  const { database } = parts.send
  for (let after = 0; !stopping.aborted;) {
    const campaigns = await listUnderWay(database.reader, after, LIST_SIZE)
    const waits = await findWaits(parts, campaigns)
    for (const campaign of campaigns) {
      const waiting = lasting(campaign, waits.get(campaign.seq))
      if (hasNews(campaign, waiting, parts.send.clock.now())) await note(parts, campaign, waiting)
    }
    if (campaigns.length < LIST_SIZE) return
    after = campaigns.at(-1)?.seq ?? after
  }
}

function lasting({ ratePerHour }: Campaign, waiting: Waiting | undefined): Waiting | undefined {
  const isBrief = waiting?.reason === 'rate' && (ratePerHour ?? 0) >= RATE_OF_ONE_A_MINUTE
  return isBrief ? undefined : waiting
}

function hasNews(
  { waitingSince, waitingAnnounced }: Campaign,
  waiting: Waiting | undefined,
  now: number,
): boolean {
  if (!waiting) return waitingSince !== null
  return waitingSince === null || (now - waitingSince >= LASTS_MS && waitingAnnounced !== waiting.reason)
}

async function note(parts: CampaignParts, seen: Campaign, waiting: Waiting | undefined): Promise<void> {
  const { database, clock } = parts.send
  await database.write(async tx => {
    const now = clock.now()
    const campaign = await findCampaignBySeq(tx.db, seen.seq)
    // It went on, was steered, or was noted by another node.
    if (campaign?.status !== seen.status || campaign.pending !== seen.pending) return
    if (!hasNews(campaign, waiting, now)) return
    const { seq, waitingSince } = campaign
    if (!waiting) return changeCampaign(tx.db, seq, { waitingSince: null, waitingAnnounced: null })
    if (waitingSince === null)
      return changeCampaign(tx.db, seq, { waitingSince: now, waitingAnnounced: null })
    await changeCampaign(tx.db, seq, { waitingAnnounced: waiting.reason })
    const { payload, ...head } = aboutCampaign(campaign, now)
    const waitingFor = waitingToApi(waiting)
    await appendEvents(tx, [{ kind: 'campaign.waiting', ...head, payload: { ...payload, waitingFor } }])
    tx.onCommit(parts.onEvents)
  })
}
