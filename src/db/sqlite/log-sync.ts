/**
 * Makes sure that what was committed is on disk, in place of SQLite's own fsync inside of a commit.
 *
 * Used by `group-commit.ts` on a server, whose writing connection commits without (`synchronous = NORMAL`: the write-ahead log
 * is written, and a checkpoint still syncs what it has to). Nobody is told of a commit before it is here. A disk that takes long
 * is waited for beside the event loop, so that whoever only reads is answered meanwhile; one that is quick is waited for in place,
 * which costs less than the way to a thread and back. Until a commit is on disk others may see it, but it was promised to nobody,
 * and whatever follows from it goes out after a commit of its own: the log is on disk up to a point or not at all.
 *
 * Invariant: of a database's files only the log may be opened here. SQLite takes no locks on it, and closing a descriptor of one that
 * it does lock would drop these locks (fcntl(2)).
 * Fails: as the disk does, and from then on always. What could not be written the system forgets, and would call the next attempt
 * a success with a hole in the log before it; only a start anew reads what there is.
 */
import type { SyncedFile } from '../../world/disk.js'
import type { Clock } from '../../world/time/clock.js'

/** A disk that takes so long each time is slow: turning disks, and some of those behind a network. */
const SLOW_MS = 4
/** Times in a row. Where only some take long, a busy machine or another one's traffic is the cause. */
const TIMES = 8

export class LogSync {
  private readonly file: SyncedFile
  private readonly clock: Pick<Clock, 'monotonic'>
  /** How many in a row took long. */
  private slowInARow = 0
  private fault: Error | undefined

  /** @param file the write-ahead log, of which there is one for as long as the database is open */
  constructor(file: SyncedFile, clock: Pick<Clock, 'monotonic'>) {
    this.file = file
    this.clock = clock
  }

  /** To be called before a transaction begins. @throws Error as `sync` does, once that has failed */
  mayBegin(): void {
    if (this.fault) throw this.fault
  }

  /**
   * All that is committed is on disk when it returns or, where it returns a promise, when that resolves.
   *
   * @throws Error with the code that SQLite would have given it
   */
  sync(): Promise<void> | undefined {
    const startedAt = this.clock.monotonic()
    if (this.slowInARow >= TIMES) return this.syncBeside(startedAt)
    try {
      this.file.syncInPlace()
    } catch (thrown) {
      throw this.failed(thrown)
    }
    this.learn(startedAt)
    return undefined
  }

  close(): void {
    this.file.close()
  }

  private async syncBeside(startedAt: number): Promise<void> {
    try {
      await this.file.sync()
    } catch (thrown) {
      throw this.failed(thrown)
    }
    this.learn(startedAt)
  }

  private learn(startedAt: number): void {
    this.slowInARow = this.clock.monotonic() - startedAt >= SLOW_MS ? this.slowInARow + 1 : 0
  }

  private failed(thrown: unknown): Error {
    const { message } = thrown as Error
    this.fault = Object.assign(
      new Error(`the disk did not take what was written (${message}); start the server anew`),
      { code: 'SQLITE_IOERR_FSYNC' },
    )
    return this.fault
  }
}
