/** Splits the writes of an erasure into transactions of a few milliseconds, and overwrites what they delete. */
import { withSecureDelete } from '../../accounts/secret-store.js'
import type { Database, Tx, WriteOptions } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import type { Services } from '../../db/services.js'
import { pauseFor } from '../../world/time/clock.js'

/** Rows read at once; how many a transaction changes is measured. */
export const ROWS_AT_ONCE = 200
const MIN_ROWS = 5
const PIECE_MS = 5
/** Pause between transactions, so that other writers are not delayed. */
const REST_MS = 1

export class Pieces {
  private readonly database: Database
  private readonly size: PieceSize

  constructor({ database, clock }: Pick<Services, 'database' | 'clock'>) {
    this.database = database
    this.size = new PieceSize(clock, MIN_ROWS, ROWS_AT_ONCE, PIECE_MS)
  }

  async run<Row>(
    rows: readonly Row[],
    work: (tx: Tx, some: readonly Row[]) => Promise<unknown>,
  ): Promise<void> {
    for (let done = 0; done < rows.length;) {
      const some = rows.slice(done, done + this.size.rows)
      await this.size.measured(some.length, measure =>
        this.write(tx => measure(() => work(tx, some)), { isLong: true }),
      )
      done += some.length
      await pauseFor(REST_MS)
    }
  }

  /** SQLite would leave the old octets in its file. */
  write<T>(work: (tx: Tx) => Promise<T>, options?: WriteOptions): Promise<T> {
    const { database } = this
    return database.write(tx => withSecureDelete(tx.db, database.dialect, () => work(tx)), options)
  }
}
