/**
 * Has what a thread commits brought to disk while it goes on: whoever writes next and has to wait for the disk would wait for all of it.
 *
 * Used by `thread-database.ts` after each of its commits, none of which waits for the disk itself. Beside the write-ahead log no file of the
 * database may be opened here (`log-sync.ts`). Fails: never; the system tells each descriptor of what it could not write, the server's
 * own too.
 */
import type { SyncedFile } from '../../world/disk.js'

export class EarlySync {
  private readonly file: SyncedFile
  private running: Promise<void> | undefined

  /** @param file the write-ahead log */
  constructor(file: SyncedFile) {
    this.file = file
  }

  /** Something was committed. While the disk is at the last that was, the next goes with those after it. */
  committed(): void {
    this.running ??= this.file.sync().then(
      () => (this.running = undefined),
      // Nothing is gained by trying again.
      () => undefined,
    )
  }

  async close(): Promise<void> {
    await this.running
    this.file.close()
  }
}
