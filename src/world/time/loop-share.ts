/**
 * Shares the event loop fairly among long computations: their pieces queue, and each turn of the loop runs only a few milliseconds of
 * them, so sockets and timers are not delayed however many computations there are.
 *
 * Used for large HTTP bodies. Callers must not hold a lock or transaction while waiting. Rejects if the piece throws.
 */
import type { Clock } from './clock.js'

/** Budget per turn of the loop; the last piece may exceed it. */
const BUDGET_MS = 8

export class LoopShare {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly waiting: (() => void)[] = []
  private usedMs = 0
  private isTurnScheduled = false

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  /** Runs the piece immediately if the budget allows and nothing is queued, otherwise in a later turn. */
  async run<T>(piece: () => T): Promise<T> {
    if (this.waiting.length > 0 || this.usedMs >= BUDGET_MS) await this.queue()
    const startedAt = this.clock.monotonic()
    try {
      return piece()
    } finally {
      this.usedMs += this.clock.monotonic() - startedAt
      if (this.usedMs < BUDGET_MS) this.waiting.shift()?.()
      this.scheduleTurn()
    }
  }

  private queue(): Promise<void> {
    this.scheduleTurn()
    return new Promise(resolve => this.waiting.push(resolve))
  }

  private scheduleTurn(): void {
    if (this.isTurnScheduled) return
    this.isTurnScheduled = true
    setImmediate(() => this.turn())
  }

  /** Resumes one piece, which resumes the next when done while the budget lasts. */
  private turn(): void {
    this.isTurnScheduled = false
    this.usedMs = 0
    this.waiting.shift()?.()
    if (this.waiting.length > 0) this.scheduleTurn()
  }
}
