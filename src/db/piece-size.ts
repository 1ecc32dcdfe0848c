/**
 * How many rows a transaction of long work has: as many as take some milliseconds, learnt from how long the last ones took.
 *
 * Used by those who have such work, one for each kind of it. Fails: as the work does.
 */
import type { Clock } from '../world/time/clock.js'

/** Of one transaction, where nothing else is said: everybody else's writes wait so long. */
const PIECE_MS = 8

export class PieceSize {
  rows: number
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly fewest: number
  private readonly most: number
  private readonly pieceMs: number

  constructor(clock: Pick<Clock, 'monotonic'>, fewest: number, most: number, pieceMs = PIECE_MS) {
    this.clock = clock
    this.fewest = fewest
    this.most = most
    this.pieceMs = pieceMs
    this.rows = fewest
  }

  /**
   * @param rows that this piece has
   * @param write runs what it is handed inside its transaction: the wait for the turn and for the disk does not count
   */
  async measured<T>(
    rows: number,
    write: (measure: (work: () => Promise<T>) => Promise<T>) => Promise<T>,
  ): Promise<T> {
    let ms = 0
    const result = await write(async work => {
      const startedAt = this.clock.monotonic()
      try {
        return await work()
      } finally {
        ms = this.clock.monotonic() - startedAt
      }
    })
    // What was small for want of rows says nothing of a whole one.
    if (rows >= this.rows / 2) this.learn(rows, ms)
    return result
  }

  private learn(rows: number, ms: number): void {
    const fitting = Math.round((rows * this.pieceMs) / Math.max(1, ms))
    this.rows = Math.max(this.fewest, Math.min(this.most, 2 * this.rows, fitting))
  }
}
