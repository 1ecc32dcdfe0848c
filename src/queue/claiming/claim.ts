/**
 * Claims due messages for delivery: one transaction that picks them and commits, before anything is dialled, who has them in
 * hand and when each would be tried again. Until its outcome is on disk no other look finds a claimed message.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Queries, Tx } from '../../db/database.js'
import { markStarted } from '../../messages/message-status-store.js'
import { claimEntries, nextDueAt, selectDue, type QueueEntry, removeEntries } from '../queue-store.js'
import type { Turn } from '../pacing/site.js'
import { findSuppressed } from '../../deliverability/suppressions/suppression-store.js'
import { normalizedAddress } from '../../mail/address.js'
import type { DeliveryJob } from '../delivery-agent.js'
import { recordTransitions } from '../../messages/message-history.js'

export interface Claimed {
  readonly turn: Turn
  /** With the attempt counted and `nextAttemptAt` set to the retry. */
  readonly entries: readonly QueueEntry[]
  /** When the next one of this lane that is not in hand falls due; undefined when nothing else waits. */
  readonly nextDueAt: number | undefined
}

export interface ClaimTerms {
  readonly now: number
  readonly retry: BackoffPolicy
  /** For the jitter of the retry times: uniform in [0, 1). */
  readonly fraction: number
  /** Names this run of the process. */
  readonly incarnation: string
}

export async function claim(
  db: Queries,
  turns: readonly Turn[],
  { now, retry, fraction, incarnation }: ClaimTerms,
): Promise<Claimed[]> {
  const looks: LaneClaim[] = []
  for (const turn of turns) looks.push(await claimLane(db, turn, now))
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
  /** As many as there are slots, at most. */
  readonly due: readonly QueueEntry[]
  readonly nextDueAt: number | undefined
}

async function claimLane(db: Queries, turn: Turn, now: number): Promise<LaneClaim> {
  const { key } = turn.lane
  const waiting = await selectDue(db, key, now, turn.slots + 1)
  const due = waiting.slice(0, turn.slots)
  const next = waiting[turn.slots]
  return { turn, due, nextDueAt: next ? next.nextAttemptAt : await nextDueAt(db, key, now) }
}

/** Whether it may have been scheduled: what is sent at once is due from the moment it is queued. */
function mayBeScheduled({ attempts, nextAttemptAt, enqueuedAt }: QueueEntry): boolean {
  return attempts === 0 && nextAttemptAt > enqueuedAt
}

/** Message ids; entries with the same count share one statement and one delay. */
function byAttempts(entries: readonly QueueEntry[]): Map<number, string[]> {
  const groups = new Map<number, string[]>()
  for (const { attempts, messageId } of entries) {
    const group = groups.get(attempts)
    if (group) group.push(messageId)
    else groups.set(attempts, [messageId])
  }
  return groups
}

/** Which of these jobs' recipients their workspace has suppressed since. */
export async function findSuppressedJobs(
  db: Queries,
  jobs: readonly DeliveryJob[],
): Promise<Set<DeliveryJob>> {
  const suppressed = new Set<DeliveryJob>()
  for (const own of groupBySuppression(jobs)) {
    const [first] = own
    if (!first) continue
    const emails = own.map(job => normalizedAddress(job.recipient))
    const found = await findSuppressed(db, first.workspaceId, emails, isMarketing(first))
    for (const job of own) if (found.has(normalizedAddress(job.recipient))) suppressed.add(job)
  }
  return suppressed
}

/** Between two attempts they were sent already, and are only not sent again. */
export async function dropSuppressed(tx: Tx, jobs: readonly DeliveryJob[], now: number): Promise<void> {
  const entries = await removeEntries(
    tx.db,
    jobs.map(job => job.messageId),
  )
  await recordTransitions(
    tx,
    entries.map(({ messageId, wasOffered }) => ({
      kind: wasOffered ? 'withheld' : 'suppressed',
      messageId,
      at: now,
    })),
  )
}

/** By what decides which suppressions count: workspace and kind of mail. */
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

/** Why a message that the operator deleted was not delivered. */
export const DELETED_BY_OPERATOR = 'deleted from the queue by the operator'

/** @param onDropped the event log has grown @returns what is to be delivered */
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
