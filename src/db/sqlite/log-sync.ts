/**
 * Makes commits durable, in place of SQLite's own fsync within a commit.
 *
 * Used by `group-commit.ts` on a server, whose writing connection commits with `synchronous = NORMAL`: the write-ahead log is written but
 * not synced, except by checkpoints. No caller is notified until the log is synced. Slow disks are synced in the thread pool so that reads
 * continue; fast disks are synced inline, which is cheaper than a thread hop. A commit may be visible to readers before it is durable. That
 * is safe: no caller has been told it succeeded, and any effect that depends on it needs a later commit, which the log orders after this
 * one.
 *
 * Invariant: of the database's files only the log may be opened here. SQLite takes no locks on it, whereas closing a descriptor of a file
 * that it locks would drop those locks (fcntl(2)).
 * Fails with the disk's error, and from then on always: after a failed fsync the kernel discards the dirty pages, and a retry would report
 * success with a hole in the log. Only a restart reads what is really on disk.
 */
import type { SyncedFile } from '../../world/disk.js'
import type { Clock } from '../../world/time/clock.js'

/** A disk whose every sync takes this long is slow: hard disks, some network storage. */
const SLOW_MS = 4
/** Consecutive slow syncs; occasional ones are due to load or other traffic. */
const TIMES = 8

export class LogSync {
  private readonly file: SyncedFile
  private readonly clock: Pick<Clock, 'monotonic'>
  /** Number of consecutive slow syncs. */
  private slowInARow = 0
  private fault: Error | undefined

  /** @param file the write-ahead log; it is not replaced while the database is open */
  constructor(file: SyncedFile, clock: Pick<Clock, 'monotonic'>) {
    this.file = file
    this.clock = clock
  }

  /** Call before a transaction begins. @throws Error as `sync` does, once that has failed */
  mayBegin(): void {
    if (this.fault) throw this.fault
  }

  /**
   * Everything committed is durable when it returns or, if it returns a promise, when that resolves.
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
      new Error(`fsync of the database log failed (${message}); restart the server`),
      { code: 'SQLITE_IOERR_FSYNC' },
    )
    return this.fault
  }
}
