/**
 * Finding campaigns, and the acts of people on them, each with its line in the activity log.
 *
 * Called by the routes and the command line. What an act does in which status says `campaign-status.ts`. Fails: AppError not_found, and
 * conflict where the status refuses the act.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { holdCampaign, releaseCampaign } from '../../queue/claiming/campaign-hold-store.js'
import type { Campaign } from './campaign.js'
import { changeCampaign, findCampaign } from './campaign-store.js'
import { statusAfter, type CampaignAct, type CampaignStatus } from './campaign-status.js'

/** @throws AppError not_found */
export async function requireCampaign(db: Queries, workspaceId: string, id: string): Promise<Campaign> {
  const campaign = isUuid(id) ? await findCampaign(db, workspaceId, id.toLowerCase()) : undefined
  if (!campaign) throw new AppError('not_found', 'no such campaign')
  return campaign
}

const DONE: Readonly<Record<CampaignAct, string>> = {
  edit: 'changed',
  delete: 'deleted',
  send: 'sent',
  schedule: 'sent',
  begin: 'begun',
  pause: 'paused',
  resume: 'resumed',
  cancel: 'cancelled',
  complete: 'completed',
  fail: 'failed',
}

/** @throws AppError conflict */
export function requireAct({ status }: Pick<Campaign, 'status'>, act: CampaignAct): CampaignStatus {
  const after = statusAfter(status, act)
  if (after === undefined)
    throw new AppError('conflict', `the campaign is ${status}, and cannot be ${DONE[act]} any more`)
  return after
}

export async function logAct(
  tx: Tx,
  { id, workspaceId, name }: Pick<Campaign, 'id' | 'workspaceId' | 'name'>,
  actor: Actor,
  what: string,
  createdAt: number,
): Promise<void> {
  await recordActivity(tx, {
    workspaceId,
    actor,
    action: `campaign.${what}`,
    subject: name,
    details: { id },
    createdAt,
  })
}

/** What people do with a campaign that is on its way. */
export type Steering = 'pause' | 'resume' | 'cancel'

/**
 * Pausing and cancelling hold what the campaign has in the queue, from the commit on; resuming releases it. The caller tells the queue
 * (`CampaignParts.onHolds`). The runner does the rest: it hands over no more of a paused campaign, continues a resumed one with the
 * recipients who are still pending, and withdraws what is queued of a cancelled one.
 *
 * @throws AppError not_found, conflict
 */
export async function steerCampaign(
  tx: Tx,
  workspaceId: string,
  id: string,
  act: Steering,
  actor: Actor,
  now: number,
): Promise<Campaign> {
  const campaign = await requireCampaign(tx.db, workspaceId, id)
  const taken = requireAct(campaign, act)
  const isWaiting = act === 'resume' && campaign.startedAt === null && campaign.scheduledAt !== null
  const status = isWaiting ? 'scheduled' : taken
  const isOver = act === 'cancel'
  const change = {
    status,
    updatedAt: now,
    // Recipients are fixed whatever the status; beyond that a paused one waits for somebody.
    nextAt: act === 'pause' && campaign.fixedAt !== null ? null : now,
    ...(isOver ? { finishedAt: now } : {}),
  }
  await changeCampaign(tx.db, campaign.seq, change)
  if (act === 'resume') await releaseCampaign(tx.db, campaign.id, now)
  // Nothing of a sandbox is ever queued.
  else if (!campaign.isSandbox) await holdCampaign(tx.db, campaign, now)
  await logAct(tx, campaign, actor, DONE[act], now)
  return { ...campaign, ...change }
}
