/**
 * What the file system says of itself: whether a file is still the one that was there, and how much room there is.
 *
 * Called by `db/`, which must notice when the ground moves under it. `fake-disk.ts` is the one that tests fill and empty.
 * Fails: a file that is not there has no identity; free space that cannot be told rejects with the system's error.
 */
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

export interface Disk {
  /** The same text as long as the same file stands at the path; undefined where there is none. A few microseconds. */
  identityOf(path: string): string | undefined
  /**
   * Another text as soon as anything was put into the folder, taken out of it or renamed in it, or another folder stands at the path;
   * undefined where there is none. Changes within one tick of the file system's clock (2 s at most) share a text.
   */
  entriesOf(folder: string): string | undefined
  /** Octets that this user may still write where the folder is. */
  freeSpace(folder: string): Promise<number>
}

export const systemDisk: Disk = {
  identityOf(path) {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat && `${stat.dev}:${stat.ino}`
  },
  entriesOf(folder) {
    const stat = statSync(folder, { throwIfNoEntry: false })
    return stat && `${stat.dev}:${stat.ino}:${stat.ctimeMs}`
  },
  async freeSpace(folder) {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
}
