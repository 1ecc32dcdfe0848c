/**
 * Wall-clock changes and the due times they invalidate.
 *
 * `ClockSteps` compares the wall clock with the monotonic clock and remembers each step. Slewing (NTP) is not a step.
 * Steps made while the server was down cannot be detected. `correctDueTimes` runs when the clock was set back, or at
 * start-up if the event log is ahead of the clock. It moves due times that no retry delay can explain, page by page
 * with a commit each. Scheduled messages keep the time their sender named.
 */
import type { Clock } from '../world/time/clock.js'
import { JITTER, retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import type { Database } from '../db/database.js'
import { correctDueTime, selectWaiting, type Waiting } from './queue-store.js'

interface Step {
  /** Ms; negative if the clock was set back. */
  readonly byMs: number
  /** Wall clock right after the step, ms since epoch UTC. */
  readonly after: number
}

/** Smaller differences are drift or a delay between the two clock reads. */
const MIN_STEP_MS = 5_000
const MAX_STEPS = 100

export class ClockSteps {
  private readonly clock: Clock
  private offset: number
  private readonly steps: Step[] = []
  private setAheadMs = 0
  private setBackMs = 0

  constructor(clock: Clock) {
    this.clock = clock
    this.offset = clock.now() - clock.monotonic()
  }

  /**
   * Steps since the last call, in ms: 0 if there were none, negative if the clock was set back, even if it was set ahead as well. What was
   * stored in between has times of the clock that was ahead.
   */
  takeStep(): number {
    this.measure()
    const byMs = this.setBackMs > 0 ? -this.setBackMs : this.setAheadMs
    this.setAheadMs = 0
    this.setBackMs = 0
    return byMs
  }

  /** Call it when a due time is stored: a step is only known if the clock is read before and after it. */
  notice(): void {
    this.measure()
  }

  /**
   * Sum of all steps since a moment (ms since epoch UTC, as read then): the amount by which `now - moment` overstates
   * the elapsed time. If a clock that was set back has shown the moment twice, the step is not counted.
   */
  since(moment: number): number {
    this.measure()
    if (this.steps.length === 0) return 0
    const now = this.clock.now()
    let sum = 0
    for (const { byMs, after } of this.steps) if (moment <= after || moment > now) sum += byMs
    return sum
  }

  private measure(): void {
    const now = this.clock.now()
    const offset = now - this.clock.monotonic()
    const byMs = offset - this.offset
    this.offset = offset
    if (Math.abs(byMs) < MIN_STEP_MS) return
    if (byMs < 0) this.setBackMs -= byMs
    else this.setAheadMs += byMs
    this.steps.push({ byMs, after: now })
    if (this.steps.length > MAX_STEPS) this.steps.shift()
  }
}

export interface DueTimesParts {
  readonly database: Database
  readonly retry: BackoffPolicy
}

export interface ClockSetBack {
  readonly now: number
  /** Ms; 0 if unknown. */
  readonly byMs: number
}

const PAGE = 200

/** @param onCorrected called after each commit with the earliest corrected due time of the lane */
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

/** @returns message ids by corrected due time */
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

/** The longest delay that a correct clock could have given the row. */
function longestWaitMs(
  { isScheduled, attempts, ...row }: Waiting,
  retry: BackoffPolicy,
  now: number,
): number {
  if (isScheduled) return Infinity
  if (attempts > 0) return retryDelayMs(retry, attempts, 0.5) * (1 + JITTER)
  // Before the first attempt only batch pacing delays a message.
  return row.enqueuedAt > now ? row.nextAttemptAt - row.enqueuedAt : Infinity
}
