/**
 * Brings due times back that were reckoned by a clock which has been set back since.
 *
 * Called by the queue manager when the clock was seen to step back, and at the start where the event log is ahead of the clock;
 * at no other time, so it costs nothing while clocks are right. Lane by lane, in pages with a commit each: nobody waits for
 * all of it, and what a page has corrected can be delivered at once. What its sender scheduled stays at the time named. Fails:
 * as the database does; what was not corrected falls due when its row says.
 */
import { JITTER, retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Database } from '../../db/database.js'
import { correctDueTime, selectWaiting, type Waiting } from './due-time-store.js'

export interface DueTimesParts {
  readonly database: Database
  readonly retry: BackoffPolicy
}

/** How the clock was found. */
export interface ClockSetBack {
  readonly now: number
  /** How far it was set back, ms; 0 where nobody knows. */
  readonly byMs: number
}

const PAGE = 200

/** @param onCorrected something of this lane falls due then */
export async function correctDueTimes(
  parts: DueTimesParts,
  lanes: readonly string[],
  clock: ClockSetBack,
  onCorrected: (lane: string, dueAt: number) => void,
): Promise<void> {
  for (const lane of lanes) {
    let after = { dueAt: clock.now, messageId: '' }
    for (;;) {
      const page = await selectWaiting(parts.database.reader, { lane, after, limit: PAGE })
      const corrections = correctionsOf(page, parts.retry, clock)
      if (corrections.size > 0) {
        await parts.database.write(async tx => {
          for (const [dueAt, ids] of corrections) await correctDueTime(tx.db, ids, dueAt)
        })
        onCorrected(lane, Math.min(...corrections.keys()))
      }
      const last = page.at(-1)
      if (!last || page.length < PAGE) break
      after = { dueAt: last.nextAttemptAt, messageId: last.messageId }
    }
  }
}

/** Message ids by due time. */
function correctionsOf(
  page: readonly Waiting[],
  retry: BackoffPolicy,
  clock: ClockSetBack,
): Map<number, string[]> {
  const corrections = new Map<number, string[]>()
  for (const row of page) {
    const longestMs = longestWaitMs(row, retry, clock.now)
    if (row.nextAttemptAt <= clock.now + longestMs) continue
    const planned = Math.min(row.nextAttemptAt - clock.byMs, clock.now + longestMs)
    const dueAt = Math.max(clock.now, planned)
    corrections.set(dueAt, [...(corrections.get(dueAt) ?? []), row.messageId])
  }
  return corrections
}

/** The longest that the row can have been put off for by a clock that was right. */
function longestWaitMs(
  { isScheduled, attempts, ...row }: Waiting,
  retry: BackoffPolicy,
  now: number,
): number {
  if (isScheduled) return Infinity
  if (attempts > 0) return retryDelayMs(retry, attempts, 0.5) * (1 + JITTER)
  // Not tried yet: a message of a batch may be put off so that the batch keeps to its rate.
  return row.enqueuedAt > now ? row.nextAttemptAt - row.enqueuedAt : Infinity
}
