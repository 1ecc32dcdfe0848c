/**
 * Syncs a writing thread's commits in the background, so that the next writer that needs a durable commit does not wait for all of them.
 *
 * Used by `thread-database.ts` after each commit, none of which is synced itself. Opens no database file other than the log
 * (`log-sync.ts`). Never fails: the kernel reports write errors to each descriptor, including the server's.
 */
import type { SyncedFile } from '../../world/disk.js'

export class EarlySync {
  private readonly file: SyncedFile
  private running: Promise<void> | undefined

  /** @param file the write-ahead log */
  constructor(file: SyncedFile) {
    this.file = file
  }

  /** Call after a commit. Commits made during a sync share the next one. */
  committed(): void {
    this.running ??= this.file.sync().then(
      () => (this.running = undefined),
      // A retry would gain nothing.
      () => undefined,
    )
  }

  async close(): Promise<void> {
    await this.running
    this.file.close()
  }
}
