/**
 * File system facts the database depends on: file identity, free space, durable writes.
 *
 * A missing file has no identity. If free space cannot be determined, `freeSpace` rejects with the system's error.
 */
import { closeSync, fdatasync, fdatasyncSync, openSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** A file opened only to sync it; other code writes to it. */
export interface SyncedFile {
  /** Blocks the event loop until everything written to the file is on disk. @throws the system's error */
  syncInPlace(): void
  /** The same in the thread pool. */
  sync(): Promise<void>
  close(): void
}

export interface Disk {
  /** Changes when another file takes the path; undefined if there is none. Takes microseconds. */
  identityOf(path: string): string | undefined
  /**
   * Changes when an entry of the folder is added, removed or renamed, or another folder takes the path; undefined if there is none.
   * Changes within one tick of the file system's clock (up to 2 s) may give the same value.
   */
  entriesOf(folder: string): string | undefined
  /** Bytes this user can still write on the folder's file system. */
  freeSpace(folder: string): Promise<number>
  /** @throws the system's error if the file does not exist or is not writable */
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
