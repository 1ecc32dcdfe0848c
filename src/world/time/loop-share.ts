/**
 * Shares the event loop among those who have long work to do on it: pieces of it wait in one line, and in each turn of the loop
 * only so many are done as take some milliseconds, so that however many there are, sockets and timers wait no longer.
 *
 * Used by `http/` for bodies that are large. A piece is what cannot be divided further; whoever waits here holds no lock and no
 * transaction. Fails: as the piece of work does, to whom it belongs.
 */
import type { Clock } from './clock.js'

/** What long work may take of one turn of the loop, beyond the piece that goes past it. */
const SHARE_MS = 8

export class LoopShare {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly waiting: (() => void)[] = []
  private usedMs = 0
  private isTurning = false

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  /** Does the piece at once where this turn has room and nobody waits, else when its turn comes. */
  async run<T>(piece: () => T): Promise<T> {
    if (this.waiting.length > 0 || this.usedMs >= SHARE_MS) await this.queue()
    const startedAt = this.clock.monotonic()
    try {
      return piece()
    } finally {
      this.usedMs += this.clock.monotonic() - startedAt
      if (this.usedMs < SHARE_MS) this.waiting.shift()?.()
      this.turnLater()
    }
  }

  private queue(): Promise<void> {
    this.turnLater()
    return new Promise(resolve => this.waiting.push(resolve))
  }

  private turnLater(): void {
    if (this.isTurning) return
    this.isTurning = true
    setImmediate(() => this.turn())
  }

  /** Wakes one; that one wakes the next when its piece is done, as long as the share lasts. */
  private turn(): void {
    this.isTurning = false
    this.usedMs = 0
    this.waiting.shift()?.()
    if (this.waiting.length > 0) this.turnLater()
  }
}
