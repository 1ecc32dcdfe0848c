/**
 * Notices when the wall clock is set (or the machine slept) while the program runs, by the monotonic clock, and knows how far
 * it was set since a moment.
 *
 * Used by the queue: due times are moments of the wall clock, ages are not. Only in memory: what was set while the program did
 * not run cannot be told from the time that passed. Slewing (NTP) is no step. Bounded in steps remembered.
 */
import type { Clock } from '../../world/time/clock.js'

interface Step {
  /** How far, ms; negative: back. */
  readonly byMs: number
  /** What the wall clock said right after it. */
  readonly after: number
}

/** Less than that is drift between two looks, or a slow machine between two readings. */
const SMALLEST_STEP_MS = 5_000
const MOST_STEPS = 100

export class ClockSteps {
  private readonly clock: Clock
  private offset: number
  private readonly steps: Step[] = []
  private untoldMs = 0

  constructor(clock: Clock) {
    this.clock = clock
    this.offset = clock.now() - clock.monotonic()
  }

  /** @returns how far the wall clock was set since this was last asked, ms; 0 when it was not, negative when it was set back */
  takeStep(): number {
    this.look()
    const byMs = this.untoldMs
    this.untoldMs = 0
    return byMs
  }

  /**
   * How far the wall clock has been set, in sum, since that moment (ms since epoch UTC, as it was read then): so much more than
   * the time that passed does the difference to now show. In doubt, where a clock that was set back has shown a moment twice,
   * the step does not count.
   */
  since(moment: number): number {
    this.look()
    if (this.steps.length === 0) return 0
    const now = this.clock.now()
    let sum = 0
    for (const { byMs, after } of this.steps) if (moment <= after || moment > now) sum += byMs
    return sum
  }

  private look(): void {
    const now = this.clock.now()
    const offset = now - this.clock.monotonic()
    const byMs = offset - this.offset
    this.offset = offset
    if (Math.abs(byMs) < SMALLEST_STEP_MS) return
    this.untoldMs += byMs
    this.steps.push({ byMs, after: now })
    if (this.steps.length > MOST_STEPS) this.steps.shift()
  }
}
