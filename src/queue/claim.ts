/**
 * Claims due messages for delivery: one transaction that picks them and commits, before anything is dialled, when
 * each would be tried again. After a crash a claimed message is tried again then, and not at once.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import type { Queries } from '../db/database.js'
import { beginAttempt, nextDueAt, selectDue, type QueueEntry } from './queue-store.js'
import type { Destination } from './destinations.js'

export interface ClaimRequest {
  readonly destination: Destination
  /** How many messages at most. */
  readonly slots: number
}

export interface Claimed {
  readonly destination: Destination
  /** With the attempt counted and `nextAttemptAt` set to the retry. */
  readonly entries: readonly QueueEntry[]
  /** When the next one at this destination falls due; undefined when nothing else waits. */
  readonly nextDueAt: number | undefined
}

export async function claim(
  db: Queries,
  requests: readonly ClaimRequest[],
  now: number,
  retry: BackoffPolicy,
  fraction: number,
): Promise<Claimed[]> {
  const claimed: Claimed[] = []
  for (const { destination, slots } of requests) {
    // What has been in hand for longer than its own retry delay (a slow server) is due again by its row.
    const overdue = [...destination.inHand].filter(([, retryAt]) => retryAt <= now).map(([id]) => id)
    const due = await selectDue(db, destination.name, now, slots, overdue)
    const entries: QueueEntry[] = []
    for (const [attempts, group] of byAttempts(due)) {
      const nextAttemptAt = now + retryDelayMs(retry, attempts + 1, fraction)
      await beginAttempt(
        db,
        group.map(entry => entry.messageId),
        nextAttemptAt,
      )
      entries.push(...group.map(entry => ({ ...entry, attempts: attempts + 1, nextAttemptAt })))
    }
    claimed.push({ destination, entries, nextDueAt: await nextDueAt(db, destination.name) })
  }
  return claimed
}

/** Entries with the same count share one statement and one delay. */
function byAttempts(entries: readonly QueueEntry[]): Map<number, QueueEntry[]> {
  const groups = new Map<number, QueueEntry[]>()
  for (const entry of entries) groups.set(entry.attempts, [...(groups.get(entry.attempts) ?? []), entry])
  return groups
}
