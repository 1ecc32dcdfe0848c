/**
 * Why queued messages and sites wait.
 *
 * A message's row says most of it. That a site is in back-off is known to the node that delivers to it, and to the others from `site_uses`
 * (`node-shares.ts`) while several nodes deliver; a node that delivers nothing while one other does is not told.
 */
import { formatCount, limitWait, RESTORE_HELD } from '../accounts/waits.js'
import { waitingUntil, type Waiting } from '../core/waiting.js'
import { allowanceWithinLimits, type Allowance } from '../accounts/sending-limit-store.js'
import { findWorkspace } from '../accounts/workspace-store.js'
import { findRestoreHold } from '../accounts/restore-hold-store.js'
import type { Database } from '../db/database.js'
import type { Clock } from '../world/time/clock.js'
import type { LocateSite } from './delivery-agent.js'
import type { SiteState } from './pacing/site.js'
import { listBackoffs } from './site-share-store.js'

type SiteFigures = Pick<SiteState, 'backoffUntil' | 'rateUntil' | 'messagesPerMinute'>

export function siteWaitsFor(
  { backoffUntil, rateUntil, messagesPerMinute }: SiteFigures,
  now: number,
): Waiting | undefined {
  if (backoffUntil !== undefined && backoffUntil > now)
    return {
      reason: 'back_off',
      until: Math.ceil(backoffUntil),
      detail: 'The receiving hosts asked to slow down, or could not be reached; they are tried again then.',
    }
  if (rateUntil === undefined || rateUntil <= now) return undefined
  return {
    reason: 'site_rate',
    until: Math.ceil(rateUntil),
    limit: messagesPerMinute,
    detail: `The receiving hosts get ${formatCount(messagesPerMinute)} messages a minute (messages_per_minute of the site); an operator can change it.`,
  }
}

/** By destination; those whose site does not wait are missing. */
export type FindSiteWaits = (destinations: readonly string[]) => Promise<ReadonlyMap<string, Waiting>>

export interface SiteWaitsParts {
  readonly database: Pick<Database, 'shared'>
  readonly clock: Clock
  readonly locateSite: LocateSite
  /** Of this process; undefined if no server runs. */
  readonly runningQueue: () =>
    | {
        siteServing(destination: string): SiteState | undefined
        siteNameOf(destination: string): string | undefined
      }
    | undefined
}

/** Destinations looked up in DNS, of a page of messages. */
const MAX_LOCATED = 100

export function openSiteWaits({ database, clock, locateSite, runningQueue }: SiteWaitsParts): FindSiteWaits {
  return async destinations => {
    const now = clock.now()
    const found = new Map<string, Waiting>()
    for (const destination of destinations) {
      const state = runningQueue()?.siteServing(destination)
      const waiting = state && siteWaitsFor(state, now)
      if (waiting) found.set(destination, waiting)
    }
    const backoffs = database.shared ? await listBackoffs(database.shared) : new Map<string, number>()
    if (backoffs.size === 0) return found
    const others = destinations.filter(destination => !found.has(destination)).slice(0, MAX_LOCATED)
    await Promise.all(
      others.map(async destination => {
        const name = runningQueue()?.siteNameOf(destination) ?? (await locateSite(destination)).name
        const leftMs = backoffs.get(name)
        if (leftMs === undefined) return
        const waiting = siteWaitsFor(
          { backoffUntil: now + leftMs, rateUntil: undefined, messagesPerMinute: 0 },
          now,
        )
        if (waiting) found.set(destination, waiting)
      }),
    )
    return found
  }
}

export interface QueuedMessage {
  readonly messageId: string
  readonly workspaceId: string
  readonly destination: string
  readonly isHeld: boolean
  readonly isCampaignPaused: boolean
  /** A delivery attempt is in progress. */
  readonly isClaimed: boolean
  /** For a later moment, by its sender. */
  readonly isScheduled: boolean
  readonly attempts: number
  readonly nextAttemptAt: number
}

export interface QueueState {
  readonly now: number
  readonly isRestoreHeld: boolean
  /** Of its destination. */
  readonly site: Waiting | undefined
  /** Of its workspace, if known. */
  readonly allowance?: Allowance | undefined
}

export interface MessageWaitsParts {
  readonly database: Pick<Database, 'reader'>
  readonly clock: Clock
  readonly findSiteWaits: FindSiteWaits
}

/** @returns why they wait, by id; those that do not are missing @param messages a page of them */
export async function findMessageWaits(
  { database: { reader }, clock, findSiteWaits }: MessageWaitsParts,
  messages: readonly QueuedMessage[],
): Promise<ReadonlyMap<string, Waiting>> {
  const found = new Map<string, Waiting>()
  if (messages.length === 0) return found
  const isRestoreHeld = (await findRestoreHold(reader)) !== undefined
  const sites = await findSiteWaits([...new Set(messages.map(({ destination }) => destination))])
  const now = clock.now()
  const allowances = new Map<string, Allowance | undefined>()
  for (const message of messages) {
    const { workspaceId, destination } = message
    if (isUntriedLater(message, now) && !allowances.has(workspaceId)) {
      const workspace = await findWorkspace(reader, workspaceId)
      allowances.set(workspaceId, workspace && (await allowanceWithinLimits(reader, workspace, now)))
    }
    const state = {
      now,
      isRestoreHeld,
      site: sites.get(destination),
      allowance: allowances.get(workspaceId),
    }
    const waiting = messageWaitsFor(message, state)
    if (waiting) found.set(message.messageId, waiting)
  }
  return found
}

/** Mail that may wait but not fail is counted in the first window of its workspace's limits that has room. */
function isUntriedLater({ attempts, isScheduled, nextAttemptAt }: QueuedMessage, now: number): boolean {
  return attempts === 0 && !isScheduled && nextAttemptAt > now
}

/** A message that is scheduled for later does not wait: it says when it is sent. */
export function messageWaitsFor(message: QueuedMessage, state: QueueState): Waiting | undefined {
  const waiting = reasonOf(message, state)
  return waiting && waitingUntil(waiting, state.now)
}

function reasonOf(message: QueuedMessage, state: QueueState): Waiting | undefined {
  const { nextAttemptAt } = message
  const { now, site, allowance } = state
  if (message.isClaimed) return undefined
  if (message.isHeld)
    return { reason: 'hold', detail: 'It is held in the queue until an operator releases it.' }
  if (message.isCampaignPaused)
    return { reason: 'hold', detail: 'Its campaign is paused; resume the campaign to continue.' }
  if (message.isScheduled && nextAttemptAt > now) return undefined
  if (state.isRestoreHeld) return RESTORE_HELD
  if (nextAttemptAt <= now) return site
  if (isUntriedLater(message, now) && allowance?.mails === 0 && allowance.fullest)
    return limitWait(allowance.fullest, nextAttemptAt)
  return {
    reason: 'retry',
    until: Math.max(nextAttemptAt, site?.until ?? 0),
    detail: 'The last attempt failed for the time being (last_reply); the next is due then.',
  }
}
