/** A disk that tests fill and empty; its files are the real ones. */
import { systemDisk, type Disk } from './disk.js'

export class FakeDisk implements Disk {
  /** Octets left. */
  free = 1_000_000_000_000

  identityOf(path: string): string | undefined {
    return systemDisk.identityOf(path)
  }

  entriesOf(folder: string): string | undefined {
    return systemDisk.entriesOf(folder)
  }

  freeSpace(): Promise<number> {
    return Promise.resolve(this.free)
  }
}
