/**
 * Detects with one stat call that the entries of a folder are unchanged: its modification time changes when an entry is created, deleted or
 * renamed.
 *
 * Used by `storage-watch.ts` with every commit. Timestamps have limited resolution, so a second change in the same tick would go unnoticed;
 * until a tick has certainly passed, it answers that there may be a change. Never throws.
 */

/** Longer than any tick: at most 10 ms in the kernel, but some file systems store whole seconds (ext4 with small inodes), or two (FAT). */
const TICK_MS = 2_500

export class FolderEntries {
  private readonly read: () => string | undefined
  private seen: string | undefined
  /** When this state was first seen, monotonic ms. */
  private since = 0
  private isSettled = false

  /** @param read see `Disk.entriesOf` */
  constructor(read: () => string | undefined) {
    this.read = read
  }

  /**
   * @param now monotonic ms
   * @returns false if the caller must check the files themselves, before asking again
   */
  areAsBefore(now: number): boolean {
    const entries = this.read()
    if (entries !== this.seen) {
      this.seen = entries
      this.since = now
      this.isSettled = false
    }
    const wereSettled = this.isSettled
    this.isSettled = now - this.since >= TICK_MS
    return wereSettled
  }
}
