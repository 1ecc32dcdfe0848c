/**
 * Notices when the wall clock is set (or the machine slept) while the program runs, by the monotonic clock, and knows how far
 * it was set since a moment.
 *
 * Used by the queue: due times are moments of the wall clock, ages are not. Only in memory: what was set while the program did
 * not run cannot be told from the time that passed. Slewing (NTP) is no step. Bounded in steps remembered.
 */
import type { Clock } from '../world/time/clock.js'
import { JITTER, retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import type { Database } from '../db/database.js'
import { correctDueTime, selectWaiting, type Waiting } from './queue-store.js'

interface Step {
  /** How far, ms; negative: back. */
  readonly byMs: number
  /** What the wall clock said right after it. */
  readonly after: number
}

/** Less than that is drift between two looks, or a slow machine between two readings. */
const MIN_STEP_MS = 5_000
const MAX_STEPS = 100

export class ClockSteps {
  private readonly clock: Clock
  private offset: number
  private readonly steps: Step[] = []
  private unreportedMs = 0

  constructor(clock: Clock) {
    this.clock = clock
    this.offset = clock.now() - clock.monotonic()
  }

  /** @returns how far the wall clock was set since this was last asked, ms; 0 when it was not, negative when it was set back */
  takeStep(): number {
    this.measure()
    const byMs = this.unreportedMs
    this.unreportedMs = 0
    return byMs
  }

  /**
   * How far the wall clock has been set, in sum, since that moment (ms since epoch UTC, as it was read then): so much more than
   * the time that passed does the difference to now show. In doubt, where a clock that was set back has shown a moment twice,
   * the step does not count.
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
    this.unreportedMs += byMs
    this.steps.push({ byMs, after: now })
    if (this.steps.length > MAX_STEPS) this.steps.shift()
  }
}

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
