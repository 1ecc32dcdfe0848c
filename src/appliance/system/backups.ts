/**
 * Backups that the server makes of its own database, as files in `backups/` of the data folder.
 *
 * One is made at a time, in a thread; `.partial` files are unfinished. Once one is complete and can be restored, the oldest ones
 * beyond `keep` are deleted. Names are made here and checked by `BACKUP_NAME`, so that a name never leads out of the folder. The state of the last attempt is kept in
 * memory.
 */
import { createReadStream, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { formatSize } from '../../core/units.js'
import { VERSION } from '../../core/version.js'
import type { Services } from '../../db/services.js'
import { BACKUP_PROGRAM, octetsToBackUp, type BackupRequest } from '../../db/sqlite/backup-file.js'
import type { BackupMessage } from '../../db/sqlite/backup-main.js'
import type { Disk } from '../../world/disk.js'
import type { Thread } from '../../world/threads.js'

export interface BackupParts extends Pick<Services, 'clock' | 'log' | 'spawn'> {
  readonly disk: Disk
  readonly dataDir: string
  /** Undefined with PostgreSQL. */
  readonly databaseFile: string | undefined
  /** `secrets.key`; undefined if none is set. */
  readonly secretKey: Uint8Array | undefined
  /** `limits.disk_reserve`, octets. */
  readonly diskReserve: () => number
}

export interface BackupSettings {
  /** Complete backups kept in the folder; 0 = all. */
  readonly keep: number
}

export interface Backup {
  readonly name: string
  readonly state: 'running' | 'complete' | 'failed'
  /** Copied share of the database, 0 to 1; verification follows. */
  readonly copied: number
  /** Octets; undefined until it is complete. */
  readonly size?: number | undefined
  readonly createdAt: number
  readonly error?: string | undefined
}

/** E.g. `postroad-2026-01-05T10-00-00-000Z.db`. */
export const BACKUP_NAME = '^postroad-\\d{4}-\\d{2}-\\d{2}T\\d{2}-\\d{2}-\\d{2}-\\d{3}Z\\.db$'
const IS_BACKUP = new RegExp(BACKUP_NAME)

const HEAP_MEGABYTES = 256

/** Shown for PostgreSQL, whose database is no file. */
export const NO_FILE_TO_BACK_UP =
  'the database is a PostgreSQL server: back it up there, e.g. with pg_dump or pg_basebackup'

export class Backups {
  private readonly parts: BackupParts
  private readonly folder: string
  private readonly keep: number
  private last: Backup | undefined
  private thread: Thread | undefined
  /** Called when the backup being made has ended. */
  private onEnded: () => void = () => {}

  constructor(parts: BackupParts, { keep }: BackupSettings) {
    this.parts = parts
    this.keep = keep
    this.folder = join(parts.dataDir, 'backups')
  }

  /** @throws AppError conflict while one is being made, or with PostgreSQL; unavailable if the disk has no room for it */
  async start(): Promise<Backup> {
    const { clock, spawn, databaseFile } = this.parts
    if (databaseFile === undefined) throw new AppError('conflict', NO_FILE_TO_BACK_UP)
    this.mustBeIdle()
    await this.mustHaveRoom(databaseFile)
    this.mustBeIdle()
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    // Left by a server that was killed.
    for (const name of readdirSync(this.folder))
      if (name.endsWith('.partial')) rmSync(join(this.folder, name), { force: true })
    const createdAt = clock.now()
    const name = `postroad-${isoTime(createdAt).replace(/[:.]/g, '-')}.db`
    const request: BackupRequest = {
      source: databaseFile,
      target: join(this.folder, name),
      now: createdAt,
      version: VERSION,
      secretKey: this.parts.secretKey,
    }
    const running: Backup = { name, state: 'running', copied: 0, createdAt }
    this.last = running
    this.thread = spawn(BACKUP_PROGRAM, {
      options: request,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => this.noteProgress(message as BackupMessage),
      onEnd: ({ fault }) => {
        this.thread = undefined
        if (this.last?.state === 'running') this.noteProgress({ error: fault?.message ?? 'interrupted' })
        this.onEnded()
      },
    })
    return running
  }

  /** Makes a backup. @throws AppError conflict, unavailable; Error if it fails @param stopping abandons it */
  async make(stopping: AbortSignal): Promise<void> {
    const ended = new Promise<void>(resolve => (this.onEnded = resolve))
    await this.start()
    const stop = () => void this.stop()
    stopping.addEventListener('abort', stop, { once: true })
    if (stopping.aborted) stop()
    await ended
    stopping.removeEventListener('abort', stop)
    if (this.last?.state === 'failed' && !stopping.aborted)
      throw new Error(this.last.error ?? 'the backup failed')
  }

  /** Newest first, the one being made and a failed last attempt included. */
  list(): Backup[] {
    const complete = this.files().flatMap((name): Backup[] => {
      const stat = statSync(join(this.folder, name), { throwIfNoEntry: false })
      return stat ? [{ name, state: 'complete', copied: 1, size: stat.size, createdAt: timeIn(name) }] : []
    })
    const unfinished = this.last && this.last.state !== 'complete' ? [this.last] : []
    return [...unfinished, ...complete].sort((a, b) => b.createdAt - a.createdAt)
  }

  /** @throws AppError not_found, conflict if it is not complete */
  read(name: string): { readonly size: number; readonly pieces: () => AsyncIterable<Buffer> } {
    const found = this.get(name)
    if (found.state !== 'complete') throw new AppError('conflict', `the backup ${name} is not complete`)
    const file = join(this.folder, name)
    return { size: found.size ?? 0, pieces: () => createReadStream(file) as AsyncIterable<Buffer> }
  }

  /** @throws AppError not_found, conflict while it is being made */
  remove(name: string): void {
    const found = this.get(name)
    if (found.state === 'running') throw new AppError('conflict', `the backup ${name} is being made`)
    rmSync(join(this.folder, name), { force: true })
    if (this.last?.name === name) this.last = undefined
  }

  /** Abandons the backup being made. */
  async stop(): Promise<void> {
    const { thread, last } = this
    if (!thread || !last) return
    await thread.terminate()
    rmSync(join(this.folder, `${last.name}.partial`), { force: true })
  }

  private get(name: string): Backup {
    const found = this.list().find(one => one.name === name)
    if (!found) throw new AppError('not_found', `no backup ${name}`)
    return found
  }

  private files(): string[] {
    try {
      return readdirSync(this.folder).filter(name => IS_BACKUP.test(name))
    } catch {
      // None was ever made.
      return []
    }
  }

  private noteProgress({ copied, isDone, warning, error }: BackupMessage): void {
    if (!this.last) return
    if (isDone) {
      const { name } = this.last
      this.last = { ...this.last, state: 'complete', copied: 1 }
      // All are kept: nothing is missing in this one, and an older one may be what is restored.
      if (warning === undefined) this.deleteOld()
      else this.parts.log.warn('backup cannot be restored', { name, reason: warning })
    } else if (error !== undefined) this.last = { ...this.last, state: 'failed', error }
    else this.last = { ...this.last, copied: copied ?? this.last.copied }
  }

  private deleteOld(): void {
    if (this.keep === 0) return
    const newestFirst = this.files().sort().reverse()
    for (const name of newestFirst.slice(this.keep)) {
      try {
        rmSync(join(this.folder, name), { force: true })
        this.parts.log.info('old backup deleted', { name })
      } catch (error) {
        this.parts.log.warn('old backup not deleted', { name, error: describeError(error) })
      }
    }
  }

  private mustBeIdle(): void {
    if (this.last?.state === 'running')
      throw new AppError('conflict', `the backup ${this.last.name} is being made; wait for its end`)
  }

  private async mustHaveRoom(databaseFile: string): Promise<void> {
    const { disk, dataDir, diskReserve } = this.parts
    const octets = octetsToBackUp(databaseFile)
    const free = await disk.freeSpace(dataDir)
    if (free < octets + diskReserve())
      throw new AppError(
        'unavailable',
        `a backup needs ${formatSize(octets)} beside limits.disk_reserve, and ${formatSize(free)} are free on the disk of ${dataDir}; ` +
          'delete older backups, or run postroad backup to another disk',
      )
  }
}

function timeIn(name: string): number {
  const [, day = '', hour = '', minute = '', second = '', ms = ''] =
    /^postroad-(.{10})T(..)-(..)-(..)-(...)Z/.exec(name) ?? []
  return Date.parse(`${day}T${hour}:${minute}:${second}.${ms}Z`)
}
