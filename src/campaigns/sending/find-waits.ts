/** Reads what tells why campaigns wait, for `waiting.ts`. From the database, but for sites (`queue/waiting.ts`), so that any node can answer. */
import { findRestoreHold } from '../../accounts/restore-hold-store.js'
import { allowanceWithinLimits, type Allowance } from '../../accounts/sending-limit-store.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import type { Waiting } from '../../core/waiting.js'
import { findTest } from '../model/variant-store.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import { MAX_UNTRIED, MIN_ROOM } from '../expansion/active-campaign.js'
import { nextDueAt } from '../model/recipient-store.js'
import { findQueuedMail, type FoundQueuedMail } from '../expansion/queued-mail-store.js'
import type { Campaign } from '../model/campaign.js'
import { campaignWaitsFor, needsQueuedMail } from './waiting.js'

/** By number; those that do not wait are missing. */
export type CampaignWaits = ReadonlyMap<number, Waiting>

type WaitParts = Pick<CampaignParts, 'send' | 'findSiteWaits'>

/** @param campaigns of one or several workspaces; a page of them */
export async function findWaits(parts: WaitParts, campaigns: readonly Campaign[]): Promise<CampaignWaits> {
  const { database, clock } = parts.send
  const waits = new Map<number, Waiting>()
  const unfinished = campaigns.filter(
    ({ status }) => status === 'sending' || status === 'paused' || status === 'scheduled',
  )
  if (unfinished.length === 0) return waits
  const now = clock.now()
  const isRestoreHeld = (await findRestoreHold(database.reader)) !== undefined
  const { fault } = database.storage
  const workspaces = new Map<string, LimitedWorkspace | undefined>()
  for (const campaign of unfinished) {
    const { workspaceId } = campaign
    if (!workspaces.has(workspaceId))
      workspaces.set(workspaceId, await findWorkspace(parts, workspaceId, now))
    const found = workspaces.get(workspaceId)
    if (!found) continue
    const waiting = campaignWaitsFor(
      {
        now,
        campaign,
        isRestoreHeld,
        fault,
        timezone: found.workspace.timezone,
        allowance: campaign.isSandbox ? undefined : found.allowance,
        ...(await detailsOf(parts, campaign, now)),
      },
      MAX_UNTRIED - MIN_ROOM,
    )
    if (waiting) waits.set(campaign.seq, waiting)
  }
  return waits
}

export async function findWait(parts: WaitParts, campaign: Campaign): Promise<Waiting | undefined> {
  return (await findWaits(parts, [campaign])).get(campaign.seq)
}

interface LimitedWorkspace {
  readonly workspace: ActingWorkspace
  readonly allowance: Allowance
}

/** @returns undefined if it was removed */
async function findWorkspace(
  { send: { database, senders } }: WaitParts,
  workspaceId: string,
  now: number,
): Promise<LimitedWorkspace | undefined> {
  try {
    const workspace = await senders.workspace(workspaceId)
    return { workspace, allowance: await allowanceWithinLimits(database.reader, workspace, now) }
  } catch (error) {
    if (error instanceof AppError && error.code === 'workspace_not_found') return undefined
    throw error
  }
}

async function detailsOf(parts: WaitParts, campaign: Campaign, now: number) {
  const { reader, slowReader } = parts.send.database
  const { seq, status, startedAt, pending, abTest, sendTime } = campaign
  const isSending = status === 'sending' && startedAt !== null && pending > 0
  return {
    test: isSending && abTest ? await findTest(reader, seq) : undefined,
    nextDueAt: isSending && sendTime === 'usual_hour' ? await nextDueAt(reader, seq) : undefined,
    queued: needsQueuedMail(campaign)
      ? await waitOf(parts, await findQueuedMail(slowReader, seq, now), now)
      : undefined,
  }
}

/** @returns undefined if some of it is being delivered, or about to be */
async function waitOf(
  { findSiteWaits }: WaitParts,
  { mails, inProgress, held, destinationsDue, nextAttemptAt }: FoundQueuedMail,
  now: number,
): Promise<Waiting | undefined> {
  if (mails === 0 || inProgress > 0) return undefined
  if (held === mails)
    return {
      reason: 'hold',
      detail: 'All its remaining emails are held in the queue until an operator releases them.',
    }
  if (destinationsDue.length > 0) {
    const sites = await findSiteWaits(destinationsDue)
    const waits = destinationsDue.flatMap(destination => sites.get(destination) ?? [])
    if (waits.length < destinationsDue.length) return undefined
    return waits.reduce((first, one) => ((one.until ?? Infinity) < (first.until ?? Infinity) ? one : first))
  }
  if (nextAttemptAt === null || nextAttemptAt <= now) return undefined
  return {
    reason: 'retry',
    until: nextAttemptAt,
    detail:
      'All its remaining emails were deferred by the receiving hosts and are tried again; the next then.',
  }
}
