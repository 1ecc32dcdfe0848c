/**
 * Looks up campaigns and applies pause, resume and cancel, each recorded in the activity log.
 *
 * Called by the routes and the command line. `campaign-status.ts` decides what is allowed. Fails: AppError not_found; conflict if the
 * status does not allow the act.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { holdCampaign, releaseCampaign } from '../../queue/claiming/campaign-hold-store.js'
import type { Campaign } from './campaign.js'
import { changeCampaign, findCampaign } from './campaign-store.js'
import { statusAfter, type CampaignAct, type CampaignStatus } from './campaign-status.js'

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

export function requireAct({ status }: Pick<Campaign, 'status'>, act: CampaignAct): CampaignStatus {
  const after = statusAfter(status, act)
  if (after === undefined)
    throw new AppError('conflict', `the campaign is ${status} and cannot be ${DONE[act]}`)
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

export type Steering = 'pause' | 'resume' | 'cancel'

/**
 * Pausing and cancelling hold the campaign's queued mail from the commit on; resuming releases it. The caller then notifies the queue
 * (`CampaignParts.onHolds`). The runner does the rest: it stops queueing for a paused campaign, continues a resumed one with its
 * pending recipients, and cancels a cancelled one's queued mail.
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
    // Recipient rows are created even while paused; after that a paused campaign has nothing to do.
    nextAt: act === 'pause' && campaign.fixedAt !== null ? null : now,
    ...(isOver ? { finishedAt: now } : {}),
  }
  await changeCampaign(tx.db, campaign.seq, change)
  if (act === 'resume') await releaseCampaign(tx.db, campaign.id, now)
  // Sandbox mail is never queued.
  else if (!campaign.isSandbox) await holdCampaign(tx.db, campaign, now)
  await logAct(tx, campaign, actor, DONE[act], now)
  return { ...campaign, ...change }
}
