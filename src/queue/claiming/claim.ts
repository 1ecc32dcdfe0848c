/**
 * Claims due messages for delivery: one transaction that picks them and commits, before anything is dialled, who has them in
 * hand and when each would be tried again. Until its outcome is on disk no other look finds a claimed message.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Queries } from '../../db/database.js'
import { markStarted } from '../../messages/message-status-store.js'
import { beginAttempt } from './claim-store.js'
import { nextDueAt, selectDue, type QueueEntry } from '../queue-store.js'
import type { Turn } from '../pacing/site.js'

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
  const looks: Look[] = []
  for (const turn of turns) looks.push(await look(db, turn, now))
  const retryAts = new Map<number, number>()
  for (const [attempts, ids] of byAttempts(looks.flatMap(({ due }) => due))) {
    const retryAt = now + retryDelayMs(retry, attempts + 1, fraction)
    await beginAttempt(db, ids, retryAt, incarnation)
    retryAts.set(attempts, retryAt)
  }
  await markStarted(
    db,
    looks.flatMap(({ due }) => due.filter(wasPutOff)).map(entry => entry.messageId),
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

interface Look {
  readonly turn: Turn
  /** As many as there are slots, at most. */
  readonly due: readonly QueueEntry[]
  readonly nextDueAt: number | undefined
}

async function look(db: Queries, turn: Turn, now: number): Promise<Look> {
  const { key } = turn.lane
  const waiting = await selectDue(db, key, now, turn.slots + 1)
  const due = waiting.slice(0, turn.slots)
  const next = waiting[turn.slots]
  return { turn, due, nextDueAt: next ? next.nextAttemptAt : await nextDueAt(db, key, now) }
}

/** Whether it may have been scheduled: what is sent at once is due from the moment it is queued. */
function wasPutOff({ attempts, nextAttemptAt, enqueuedAt }: QueueEntry): boolean {
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
