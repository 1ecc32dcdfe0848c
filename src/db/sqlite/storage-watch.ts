/**
 * Storage checks: the database files, free disk space, and whether commits succeed.
 *
 * Used by a server's database (`open-sqlite.ts`). Each commit checks that the files still exist before it is acknowledged: what is
 * committed into a deleted file is lost with the process. Usually one stat of the folder is enough. New mail is only
 * accepted above the disk reserve; accepted mail is delivered using the reserve. Each change of state is logged once.
 *
 * States: a file is missing (no writes until it is back or the server is restarted); writes fail (every write tries again; over once one
 * succeeds and none has failed for a while); disk space is low (new mail is refused until a tenth more than the reserve is free).
 *
 * Throws `unavailable` with a message for the client.
 */
import { dirname } from 'node:path'
import { AppError, describeError } from '../../core/errors.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Disk } from '../../world/disk.js'
import type { Log } from '../../world/log.js'
import type { Storage, StorageFault } from '../database.js'
import { storageCode } from '../faults/storage-fault.js'

export interface StorageWatchParts {
  readonly disk: Disk
  readonly log: Log
  /** New mail is refused below this many free octets; 0 = never. */
  readonly reserve: number
}

const LOOK_EVERY_MS = 1_000
const RETRY_AFTER_MS = 60_000
/** Interval of log lines while writes fail. */
const REMIND_EVERY_MS = 60_000
/** Time without a failure until writes count as recovered: on a full disk small writes, such as that of `/health`, succeed now and then. */
const CALM_MS = 10_000
/** How long a check is valid when a transaction begins; every commit is checked. */
const LOOK_HOLDS_MS = 20
/** Free space must exceed the reserve by this fraction before new mail is accepted again. */
const MARGIN = 1.1

const GONE = 'the database files were moved, replaced or deleted while the server runs'

export class StorageWatch implements Storage {
  private readonly parts: StorageWatchParts
  private readonly clock: Clock
  private readonly folder: string
  /** By path, as they were at opening. */
  private readonly files: ReadonlyMap<string, string | undefined>
  private readonly isLogBeside: boolean
  private readonly entries: FolderEntries
  private timer: Timer | undefined
  private isClosed = false
  private missing: string | undefined
  /** Time of the last file check, monotonic. */
  private lookedAt = -Infinity
  private isShort = false
  private failing: { readonly error: string; count: number; lastAt: number; toldAt: number } | undefined

  /** @param file of the open database @param clock schedules the checks */
  constructor(parts: StorageWatchParts, clock: Clock, file: string) {
    this.parts = parts
    this.clock = clock
    this.folder = dirname(file)
    const paths = [file, `${file}-wal`, `${file}-shm`]
    this.files = new Map(paths.map(path => [path, parts.disk.identityOf(path)]))
    this.isLogBeside = ![...this.files.values()].includes(undefined)
    this.entries = new FolderEntries(() => parts.disk.entriesOf(this.folder))
  }

  /** Checks once before it resolves, then periodically. */
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

  /** Call before a transaction begins. @throws AppError unavailable */
  mayBegin(): void {
    if (this.missing !== undefined || this.clock.monotonic() - this.lookedAt >= LOOK_HOLDS_MS)
      this.requireFiles()
  }

  /** Call after a commit, before it is acknowledged. @throws AppError unavailable */
  requireFiles(): void {
    const now = this.clock.monotonic()
    // The log is in the folder of the real file, not of a symbolic link to it.
    const isAsBefore = this.isLogBeside && this.entries.areAsBefore(now)
    if (isAsBefore) this.lookedAt = now
    else this.lookAtFiles()
    if (this.missing !== undefined)
      throw new AppError('unavailable', 'the mail server has lost its database; nothing was stored', {
        retryAfterMs: RETRY_AFTER_MS,
      })
  }

  /** Call when a transaction is durable. */
  committed(): void {
    if (!this.failing || this.clock.monotonic() - this.failing.lastAt < CALM_MS) return
    this.parts.log.info('database writes resumed', { failures: this.failing.count })
    this.failing = undefined
  }

  /** Call when a transaction failed; errors of the work itself do not count as storage faults. */
  failed(error: unknown): void {
    const code = storageCode(error)
    // A lock is reported to the caller that waits for it; it is no storage fault.
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
        fix: `put the file back, or stop the server and restore a backup; until it is stopped the files can be copied from /proc/${process.pid}/fd`,
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
      // Missing files are reported on their own; a file system that reports no free space is no reason to refuse mail.
      return
    }
    const isShort = free < (this.isShort ? reserve * MARGIN : reserve)
    if (isShort === this.isShort) return
    this.isShort = isShort
    if (isShort) log.error('disk space exhausted', { free, reserve })
    else log.info('disk space recovered', { free, reserve })
  }
}

/** Longer than any tick: at most 10 ms in the kernel, but some file systems store whole seconds (ext4 with small inodes), or two (FAT). */
const TICK_MS = 2_500

/**
 * Detects with one stat call that the entries of a folder are unchanged: its modification time changes when an entry is created, deleted or
 * renamed. Timestamps have limited resolution, so it answers that there may be a change until a tick has certainly passed. Never throws.
 */
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
