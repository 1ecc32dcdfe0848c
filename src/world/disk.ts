/**
 * What the file system says of itself: whether a file is still the one that was there, how much room there is, when octets are on disk.
 *
 * Called by `db/`, which must notice when the ground moves under it. `fake-disk.ts` is the one that tests fill and empty.
 * Fails: a file that is not there has no identity; free space that cannot be told rejects with the system's error.
 */
import { closeSync, fdatasync, fdatasyncSync, openSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** A file that somebody writes to, and whose octets are to be on disk at certain moments. */
export interface SyncedFile {
  /** All that was written to it, by whomever, is on disk when it returns. The event loop stands meanwhile. @throws the system's error */
  syncInPlace(): void
  /** The same beside the event loop. */
  sync(): Promise<void>
  close(): void
}

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
  /** @throws the system's error where there is no such file, or it may not be written */
  openSynced(path: string): SyncedFile
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
  openSynced(path) {
    const descriptor = openSync(path, 'r+')
    return {
      syncInPlace: () => fdatasyncSync(descriptor),
      sync: () =>
        new Promise((resolve, reject) => fdatasync(descriptor, error => (error ? reject(error) : resolve()))),
      close: () => closeSync(descriptor),
    }
  },
}
