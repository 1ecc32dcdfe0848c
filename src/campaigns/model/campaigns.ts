/**
 * Looks up campaigns and checks what they refer to; applies pause, resume and cancel, each recorded in the activity log.
 *
 * `campaign.ts` decides what is allowed. Fails: AppError not_found; conflict if the status does not allow the act.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import { holdCampaign, releaseCampaign } from '../../queue/claiming/campaign-hold-store.js'
import {
  type Campaign,
  statusAfter,
  type CampaignAct,
  type CampaignStatus,
  type CampaignFields,
  type NamedAudience,
} from './campaign.js'
import { requireDistinct, type AbTest, type SaidByVariant } from './ab-test.js'
import { notePause, noteResume } from './variant-store.js'
import { changeCampaign, findCampaign, findUnfinishedUsing } from './campaign-store.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { findAskedTemplate } from '../../content/templates/asked-template.js'
import { refusal } from '../../audience/checks.js'
import { findList } from '../../audience/lists/list-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import type { ReferenceHolder } from '../../resource/references.js'

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
  await recordActivity(tx, { workspaceId, actor }, createdAt, {
    action: `campaign.${what}`,
    subject: name,
    details: { id },
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
    waitingSince: null,
    waitingAnnounced: null,
    ...(isOver ? { finishedAt: now } : {}),
  }
  await changeCampaign(tx.db, campaign.seq, change)
  if (campaign.abTest && act === 'pause') await notePause(tx.db, campaign.seq, now)
  if (campaign.abTest && act === 'resume') await noteResume(tx.db, campaign.seq, now)
  if (act === 'resume') await releaseCampaign(tx.db, campaign.id, now)
  // Sandbox mail is never queued.
  else if (!campaign.isSandbox) await holdCampaign(tx.db, campaign, now)
  await logAct(tx, campaign, actor, DONE[act], now)
  return { ...campaign, ...change }
}

/** Defaults of a new campaign. */
export const NOTHING_SAID = {
  listId: null,
  segmentId: null,
  audience: null,
  resendOf: null,
  resendTo: null,
  fromEmail: null,
  fromName: null,
  replyTo: null,
  preheader: null,
  trackOpens: null,
  trackClicks: null,
  ratePerHour: null,
  sendWindow: null,
  sendTime: 'at_once',
  abTest: null,
  isArchived: false,
  isIndexed: false,
} as const satisfies Partial<CampaignFields>

/** Referenced objects must exist. @throws AppError template_not_found, not_found, validation_error */
export async function requireNamed(
  db: Queries,
  workspace: ActingWorkspace,
  fields: Pick<
    CampaignFields,
    | 'subject'
    | 'templateId'
    | 'fromEmail'
    | 'fromName'
    | 'listId'
    | 'segmentId'
    | 'audience'
    | 'resendOf'
    | 'abTest'
  >,
): Promise<void> {
  const { listId, segmentId, audience, resendOf, abTest } = fields
  if (listId === null && segmentId === null && audience === null && resendOf === null)
    throw refusal('list_id', 'give list_id, segment_id or audience')
  await findAskedTemplate(db, workspace, fields.templateId)
  if (abTest) await requireVariants(db, workspace, fields, abTest)
  if (listId !== null) await requireAudience(db, workspace.id, { listId }, 'list_id')
  if (segmentId !== null) await requireAudience(db, workspace.id, { segmentId }, 'segment_id')
  for (const part of ['include', 'exclude'] as const)
    for (const [at, one] of (audience?.[part] ?? []).entries())
      await requireAudience(
        db,
        workspace.id,
        one,
        `audience.${part}.${at}.${'listId' in one ? 'list_id' : 'segment_id'}`,
      )
}

/** @param path of its field @throws AppError not_found */
async function requireAudience(
  db: Queries,
  workspaceId: string,
  one: NamedAudience,
  path: string,
): Promise<void> {
  const [what, id] = 'listId' in one ? (['list', one.listId] as const) : (['segment', one.segmentId] as const)
  const find = what === 'list' ? findList : findSegment
  if (!(isUuid(id) && (await find(db, workspaceId, id))))
    throw new AppError('not_found', `${path}: no ${what} has this id`, { path })
}

async function requireVariants(
  db: Queries,
  workspace: ActingWorkspace,
  fields: SaidByVariant,
  abTest: AbTest,
): Promise<void> {
  requireDistinct(fields, abTest)
  for (const [at, { templateId }] of abTest.variants.entries())
    if (templateId !== null)
      await findAskedTemplate(db, workspace, templateId, `ab_test.variants.${at}.template_id`)
}

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
