/**
 * Watches the ground that the database stands on: its files, the room on their disk, and whether commits succeed.
 *
 * Used by a server's database (`open-sqlite.ts`). Each commit asks whether the files are still where they were before it is
 * acknowledged: what is committed into a deleted file is gone with the process. As long as nothing was put into their folder, taken
 * out of it or renamed in it they are, which is one question instead of three. New mail asks whether there is room; what
 * was accepted is delivered and settled on the rest. Says each change of state in one line of the log.
 *
 * States: a file is missing (nothing is written until it is back at its place, or the server started anew); writing fails (it is
 * tried again with each write, and over with the first that succeeds when none has failed for a while); room is short (new mail is
 * refused until there is a tenth more than the reserve).
 *
 * Fails: by `unavailable`, with words for whoever asked.
 */
import { dirname } from 'node:path'
import { AppError, describeError } from '../../core/errors.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Disk } from '../../world/disk.js'
import type { Log } from '../../world/log.js'
import { FolderEntries } from './folder-entries.js'
import { storageCode } from './storage-fault.js'

export interface StorageWatchParts {
  readonly disk: Disk
  readonly log: Log
  /** Octets of the disk below which new mail is refused; 0 = never. */
  readonly reserve: number
}

/** Why the database does not do all that it should, for `/health`. */
export interface StorageFault {
  /** Stable, for programs. */
  readonly code: 'database_gone' | 'database_failing' | 'database_busy' | 'disk_low'
  /** Whether what was accepted is still worked on. */
  readonly isFatal: boolean
  /** One sentence, for the operator. */
  readonly reason: string
}

/** What others see of it. */
export interface Storage {
  /** To be asked before new mail is taken. @throws AppError unavailable */
  requireRoom(): void
  /** The worst that is known at this moment. */
  readonly fault: StorageFault | undefined
}

/** For a database whose ground nobody watches. */
export const UNWATCHED: Storage = { requireRoom() {}, fault: undefined }

const LOOK_EVERY_MS = 1_000
const RETRY_AFTER_MS = 60_000
/** Lines on writes that still fail. */
const REMIND_EVERY_MS = 60_000
/** Without a failure, until writing counts as mended: on a full disk little writes, such as that of `/health`, find room now and then. */
const CALM_MS = 10_000
/** For so long a look holds where a transaction begins; a commit is looked after each time. */
const LOOK_HOLDS_MS = 20
/** Room for new mail has to exceed the reserve by this before it is taken again. */
const MARGIN = 1.1

const GONE = 'the database files were moved, replaced or deleted while the server runs'

export class StorageWatch implements Storage {
  private readonly parts: StorageWatchParts
  private readonly clock: Clock
  private readonly folder: string
  /** By path, as they were when the database was opened. */
  private readonly files: ReadonlyMap<string, string | undefined>
  private readonly isLogBeside: boolean
  private readonly entries: FolderEntries
  private timer: Timer | undefined
  private isClosed = false
  private missing: string | undefined
  /** When the files were looked at, on the monotonic clock. */
  private lookedAt = -Infinity
  private isShort = false
  private failing: { readonly error: string; count: number; lastAt: number; toldAt: number } | undefined

  /** @param file of the database, which is open @param clock drives the looking */
  constructor(parts: StorageWatchParts, clock: Clock, file: string) {
    this.parts = parts
    this.clock = clock
    this.folder = dirname(file)
    const paths = [file, `${file}-wal`, `${file}-shm`]
    this.files = new Map(paths.map(path => [path, parts.disk.identityOf(path)]))
    this.isLogBeside = ![...this.files.values()].includes(undefined)
    this.entries = new FolderEntries(() => parts.disk.entriesOf(this.folder))
  }

  /** Looks once before it resolves, and from then on by the clock. */
  async start(): Promise<void> {
    await this.look()
  }

  close(): void {
    this.isClosed = true
    this.timer?.cancel()
  }

  get fault(): StorageFault | undefined {
    this.lookAtFiles()
    if (this.missing !== undefined)
      return { code: 'database_gone', isFatal: true, reason: `${GONE}: ${this.missing}` }
    if (this.failing)
      return {
        code: 'database_failing',
        isFatal: true,
        reason: `the database cannot be written: ${this.failing.error}`,
      }
    if (this.isShort)
      return {
        code: 'disk_low',
        isFatal: false,
        reason: 'the disk is nearly full (limits.disk_reserve): new mail is refused',
      }
    return undefined
  }

  requireRoom(): void {
    if (this.isShort)
      throw new AppError('unavailable', 'the disk of the mail server is nearly full; try again later', {
        retryAfterMs: RETRY_AFTER_MS,
      })
  }

  /** To be called before a transaction begins. @throws AppError unavailable */
  mayBegin(): void {
    if (this.missing !== undefined || this.clock.monotonic() - this.lookedAt >= LOOK_HOLDS_MS)
      this.requireFiles()
  }

  /** To be called after a transaction was committed and before anybody is told of it. @throws AppError unavailable */
  requireFiles(): void {
    const now = this.clock.monotonic()
    // A database that is a link has its log in another folder.
    const isAsBefore = this.isLogBeside && this.entries.areAsBefore(now)
    if (isAsBefore) this.lookedAt = now
    else this.lookAtFiles()
    if (this.missing !== undefined)
      throw new AppError('unavailable', 'the mail server has lost its database; nothing was stored', {
        retryAfterMs: RETRY_AFTER_MS,
      })
  }

  /** A transaction is on disk. */
  committed(): void {
    if (!this.failing || this.clock.monotonic() - this.failing.lastAt < CALM_MS) return
    this.parts.log.info('database writes resumed', { failures: this.failing.count })
    this.failing = undefined
  }

  /** A transaction came to nothing; what its work threw for a reason of its own says nothing of the ground. */
  failed(error: unknown): void {
    const code = storageCode(error)
    // Of a lock whoever waits is told; it says nothing of the ground.
    if (code === undefined || code.startsWith('SQLITE_BUSY')) return
    const now = this.clock.monotonic()
    this.failing ??= { error: describeError(error), count: 0, lastAt: now, toldAt: -Infinity }
    this.failing.count += 1
    this.failing.lastAt = now
    if (now - this.failing.toldAt < REMIND_EVERY_MS) return
    this.failing.toldAt = now
    this.parts.log.error('database write failed', {
      error: describeError(error),
      code,
      failures: this.failing.count,
    })
  }

  private async look(): Promise<void> {
    this.lookAtFiles()
    await this.lookAtRoom()
    if (!this.isClosed) this.timer = this.clock.after(LOOK_EVERY_MS, () => void this.look())
  }

  private lookAtFiles(): void {
    this.lookedAt = this.clock.monotonic()
    const missing = this.findMissing()
    if (missing === this.missing) return
    this.missing = missing
    if (missing === undefined) this.parts.log.info('database files restored')
    else
      this.parts.log.error('database files missing', {
        file: missing,
        mend: `put the file back, or stop the server and restore a backup; until it is stopped the files can be copied from /proc/${process.pid}/fd`,
      })
  }

  private findMissing(): string | undefined {
    for (const [path, identity] of this.files) if (this.parts.disk.identityOf(path) !== identity) return path
    return undefined
  }

  private async lookAtRoom(): Promise<void> {
    const { disk, log, reserve } = this.parts
    let free: number
    try {
      free = await disk.freeSpace(this.folder)
    } catch {
      // Files that are gone say so themselves; a file system that does not tell is no reason to refuse mail.
      return
    }
    const isShort = free < (this.isShort ? reserve * MARGIN : reserve)
    if (isShort === this.isShort) return
    this.isShort = isShort
    if (isShort) log.error('disk space exhausted', { free, reserve })
    else log.info('disk space recovered', { free, reserve })
  }
}
