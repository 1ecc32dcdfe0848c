/** A disk that tests fill and empty, slow down and break; its files are the real ones. */
import { systemDisk, type Disk, type SyncedFile } from './disk.js'

export class FakeDisk implements Disk {
  /** Octets left. */
  free = 1_000_000_000_000
  /** Called with each sync: lets time pass, or throws what a broken disk would. */
  onSync: () => void = () => {}
  /** What a sync beside the event loop waits for. */
  syncing: Promise<void> = Promise.resolve()
  /** How many syncs beside the event loop were begun. */
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
