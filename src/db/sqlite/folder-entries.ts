/**
 * Tells by one question to the file system that the files of a folder are still the ones that were there: a folder says when anything
 * was last put into it, taken out of it or renamed in it.
 *
 * Used by `storage-watch.ts` with every commit. It says so by a clock that ticks, so that a second change in the same tick would go
 * unseen; until a tick is certainly over, it is no answer. Fails: never.
 */

/** Longer than any tick: the kernel's is 10 ms at most, but some file systems keep whole seconds (ext4 with small inodes), or two (FAT). */
const TICK_MS = 2_500

export class FolderEntries {
  private readonly read: () => string | undefined
  private seen: string | undefined
  /** When they were first seen as they are, ms that never go back. */
  private since = 0
  private isSettled = false

  /** @param read see `Disk.entriesOf` */
  constructor(read: () => string | undefined) {
    this.read = read
  }

  /**
   * @param now ms that never go back
   * @returns false where the caller has to look at the files themselves, and does so before it asks again
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
