/** A disk for tests that can fill up, slow down and fail; its files are real. */
import { systemDisk, type Disk, type SyncedFile } from './disk.js'

export class FakeDisk implements Disk {
  free = 1_000_000_000_000
  /** Called on each sync; may advance a clock or throw. */
  onSync: () => void = () => {}
  /** Delays `sync` until resolved. */
  syncing: Promise<void> = Promise.resolve()
  /** Number of `sync` calls. */
  begun = 0

  identityOf(path: string): string | undefined {
    return systemDisk.identityOf(path)
  }

  entriesOf(folder: string): string | undefined {
    return systemDisk.entriesOf(folder)
  }

  freeSpace(): Promise<number> {
    return Promise.resolve(this.free)
  }

  openSynced(path: string): SyncedFile {
    const file = systemDisk.openSynced(path)
    return {
      syncInPlace: () => {
        this.onSync()
        file.syncInPlace()
      },
      sync: async () => {
        this.begun += 1
        await this.syncing
        this.onSync()
        await file.sync()
      },
      close: () => file.close(),
    }
  }
}
