/**
 * Adapts the number of rows per transaction of long work so that one takes a few milliseconds, based on the previous ones.
 *
 * One instance per kind of work. Fails as the work does.
 */
import type { Clock } from '../world/time/clock.js'

/** Default target duration of one transaction, for which other writes wait. */
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
   * @param rows number of rows in this piece
   * @param write runs its argument inside the transaction; waiting for the turn and the disk does not count
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
    // A piece that was small for lack of rows says nothing about a full one.
    if (rows >= this.rows / 2) this.learn(rows, ms)
    return result
  }

  private learn(rows: number, ms: number): void {
    const fitting = Math.round((rows * this.pieceMs) / Math.max(1, ms))
    this.rows = Math.max(this.fewest, Math.min(this.most, 2 * this.rows, fitting))
  }
}
