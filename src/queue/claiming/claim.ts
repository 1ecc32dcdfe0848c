/**
 * Steps of a claim, all before anything is dialled.
 *
 * `claim` picks due messages and records the claim and the retry time. `dropWithdrawn` fails messages that the operator
 * deleted during an earlier attempt. `dropUnwanted` ends messages whose recipient was suppressed or took back the consent after they were
 * accepted.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Queries, Tx } from '../../db/database.js'
import { markStarted } from '../../messages/message-status-store.js'
import { nextDueTimes, selectDue, type LanePart } from '../due-store.js'
import { claimEntries, removeEntries, type QueueEntry } from '../queue-store.js'
import type { Turn } from '../pacing/site.js'
import { findSuppressed } from '../../deliverability/suppressions/suppression-store.js'
import { normalizedAddress } from '../../mail/address.js'
import { findWithdrawnConsent } from '../../audience/contacts/consent-store.js'
import type { WithheldReason } from '../../messages/message-status.js'
import type { DeliveryJob } from '../delivery-agent.js'
import { recordTransitions } from '../../messages/message-history.js'

export interface Claimed {
  readonly turn: Turn
  /** With this attempt counted and `nextAttemptAt` set to the retry. */
  readonly entries: readonly QueueEntry[]
  /** When the lane's next unclaimed message falls due; undefined if nothing waits. */
  readonly nextDueAt: number | undefined
}

export interface ClaimTerms {
  readonly now: number
  readonly retry: BackoffPolicy
  /** Jitter of the retry times: uniform in [0, 1). */
  readonly fraction: number
  /** Identifies this run of the process. */
  readonly incarnation: string
  /** This node's part of a destination that several nodes deliver to. */
  readonly partOf?: ((destination: string) => LanePart | undefined) | undefined
}

export async function claim(
  db: Queries,
  turns: readonly Turn[],
  { now, retry, fraction, incarnation, partOf }: ClaimTerms,
): Promise<Claimed[]> {
  const looks = await lookIntoLanes(db, turns, now, partOf)
  const retryAts = new Map<number, number>()
  for (const [attempts, ids] of byAttempts(looks.flatMap(({ due }) => due))) {
    const retryAt = now + retryDelayMs(retry, attempts + 1, fraction)
    await claimEntries(db, ids, retryAt, incarnation)
    retryAts.set(attempts, retryAt)
  }
  await markStarted(
    db,
    looks.flatMap(({ due }) => due.filter(mayBeScheduled)).map(entry => entry.messageId),
    now,
  )
  return looks.map(({ turn, due, nextDueAt }) => ({
    turn,
    entries: due.map(entry => ({
      ...entry,
      attempts: entry.attempts + 1,
      nextAttemptAt: retryAts.get(entry.attempts) ?? entry.nextAttemptAt,
      dueAt: entry.nextAttemptAt,
    })),
    nextDueAt,
  }))
}

interface LaneClaim {
  readonly turn: Turn
  readonly due: readonly QueueEntry[]
  readonly nextDueAt: number | undefined
}

async function lookIntoLanes(
  db: Queries,
  turns: readonly Turn[],
  now: number,
  partOf: ClaimTerms['partOf'],
): Promise<LaneClaim[]> {
  const looks = turns.map(({ lane, slots, dueAt }) => {
    const part = partOf?.(lane.destination)
    return { lane: lane.key, limit: slots + 1, from: dueAt, ...(part ? { part } : {}) }
  })
  const waiting = await selectDue(db, looks, now)
  const of = ({ lane }: Turn) => waiting.get(lane.key) ?? []
  const emptied = looks.filter(({ lane, limit }) => (waiting.get(lane)?.length ?? 0) < limit)
  const later = await nextDueTimes(db, emptied, now)
  return turns.map(turn => ({
    turn,
    due: of(turn).slice(0, turn.slots),
    nextDueAt: of(turn)[turn.slots]?.nextAttemptAt ?? later.get(turn.lane.key),
  }))
}

/** Mail that was not scheduled is due from the moment it was enqueued. */
function mayBeScheduled({ attempts, nextAttemptAt, enqueuedAt }: QueueEntry): boolean {
  return attempts === 0 && nextAttemptAt > enqueuedAt
}

/** Message ids by attempts so far: each group shares one retry time and one statement. */
function byAttempts(entries: readonly QueueEntry[]): Map<number, string[]> {
  const groups = new Map<number, string[]>()
  for (const { attempts, messageId } of entries) {
    const group = groups.get(attempts)
    if (group) group.push(messageId)
    else groups.set(attempts, [messageId])
  }
  return groups
}

/** Jobs that are not sent after all, with the reason. */
export type Unwanted = ReadonlyMap<DeliveryJob, WithheldReason>

/**
 * Jobs whose recipient the workspace has suppressed since acceptance, and mail of campaigns and automations whose contact
 * no longer wants it. An unsubscribe stops marketing mail only.
 */
export async function findUnwanted(db: Queries, jobs: readonly DeliveryJob[]): Promise<Unwanted> {
  const unwanted = new Map<DeliveryJob, WithheldReason>()
  for (const own of groupBySuppression(jobs)) {
    const [first] = own
    if (!first) continue
    const emails = own.map(job => normalizedAddress(job.recipient))
    const found = await findSuppressed(db, first.workspaceId, emails, isMarketing(first))
    for (const job of own) if (found.has(normalizedAddress(job.recipient))) unwanted.set(job, 'suppressed')
  }
  const asked = jobs.filter(job => asksForConsent(job) && !unwanted.has(job))
  if (asked.length === 0) return unwanted
  const withdrawn = await findWithdrawnConsent(
    db,
    asked.map(({ messageId }) => messageId),
  )
  for (const job of asked) {
    const reason = withdrawn.get(job.messageId)
    if (reason !== undefined) unwanted.set(job, reason)
  }
  return unwanted
}

/** Their recipients are contacts. Other marketing mail names its own. */
function asksForConsent({ origin }: DeliveryJob): boolean {
  return origin?.campaignId !== undefined || origin?.automationId !== undefined
}

/** Messages that were already offered to a server keep their `sent_at`. */
export async function dropUnwanted(tx: Tx, unwanted: Unwanted, now: number): Promise<void> {
  const reasons = new Map([...unwanted].map(([{ messageId }, reason]) => [messageId, reason]))
  const factsOf = (reason: WithheldReason | undefined) =>
    reason === undefined || reason === 'suppressed' ? {} : { facts: { reason } }
  const entries = await removeEntries(tx.db, [...reasons.keys()])
  await recordTransitions(
    tx,
    entries.map(({ messageId, wasOffered }) => ({
      kind: wasOffered ? 'withheld' : 'suppressed',
      messageId,
      at: now,
      ...factsOf(reasons.get(messageId)),
    })),
  )
}

function groupBySuppression(jobs: readonly DeliveryJob[]): Iterable<readonly DeliveryJob[]> {
  const groups = new Map<string, DeliveryJob[]>()
  for (const job of jobs) {
    const key = `${job.workspaceId} ${isMarketing(job)}`
    const group = groups.get(key)
    if (group) group.push(job)
    else groups.set(key, [job])
  }
  return groups.values()
}

function isMarketing({ origin }: DeliveryJob): boolean {
  return origin?.isMarketing ?? false
}

/** Reason of `email.failed`, for a message the operator deleted from the queue. */
export const DELETED_BY_OPERATOR = 'deleted from the queue by the operator'

/**
 * A message deleted during its delivery is marked and keeps its row: the delivery may still succeed, and its outcome
 * decides. If it has no outcome (released, or lost in a crash), the next claim drops it here.
 *
 * @param onDropped called after the commit if events were appended
 * @returns the claims without the dropped messages
 */
export async function dropWithdrawn(
  tx: Tx,
  claimed: readonly Claimed[],
  now: number,
  onDropped: () => void,
): Promise<readonly Claimed[]> {
  const withdrawn = claimed.flatMap(({ entries }) => entries.filter(({ isWithdrawn }) => isWithdrawn))
  if (withdrawn.length === 0) return claimed
  await recordTransitions(
    tx,
    withdrawn.map(({ messageId }) => ({
      kind: 'failed',
      messageId,
      at: now,
      facts: { reason: DELETED_BY_OPERATOR },
    })),
  )
  tx.onCommit(onDropped)
  return claimed.map(one => ({ ...one, entries: one.entries.filter(({ isWithdrawn }) => !isWithdrawn) }))
}
