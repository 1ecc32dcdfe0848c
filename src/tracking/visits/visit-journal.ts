/**
 * Where visits are kept between the answer and the count: files that are only appended to, beside the database.
 *
 * The answer to a click waits until its line is on disk, and for nothing else: neither for the database's writer nor for a lock. What
 * comes while one write is under way shares the next (group commit), and where many come a write waits a moment for more of them. `visit-reader.ts` reads the files, `visit-counter.ts` deletes
 * those that are counted. Each start begins a new file, so that nothing is ever written behind a line that a crash broke off.
 * Bounded: what waits in memory, what lies on disk; beyond that visits are not kept, and the reader is led on all the same.
 * Fails: opening rejects with the system's error; `keep` never rejects, a visit that is not on disk is `false`.
 */
import { constants } from 'node:fs'
import { mkdir, open, readdir, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import { pauseFor, type Clock } from '../../world/time/clock.js'
import { visitLine, type Visit } from './visit.js'

export interface JournalParts {
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}

/** A line of the journal, by where it ends. */
export interface JournalPlace {
  /** Number of the file. */
  readonly file: number
  readonly octets: number
}

export function visitsFolder(dataDir: string): string {
  return join(dataDir, 'visits')
}

export interface JournalBounds {
  /** Of one file; the next visit begins another. */
  readonly fileOctets: number
  /** Files that are not counted yet. */
  readonly files: number
  /** UTF-16 units that wait to be written. */
  readonly waitingUnits: number
}

const BOUNDS: JournalBounds = { fileOctets: 16 * 1_024 * 1_024, files: 32, waitingUnits: 8 * 1_024 * 1_024 }
/** A disk that takes longer keeps no reader waiting. */
const LONGEST_WAIT_MS = 500
/** Visits that share a write from which on the next one waits for company. */
const MANY_AT_ONCE = 4
const COMPANY_MS = 1
/** What a write has returned from is on disk: one way to the thread pool instead of two. */
const APPENDED_DURABLY =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND | constants.O_DSYNC
/** Between two complaints. */
const QUIET_MS = 60_000

interface Waiting {
  readonly lines: string[]
  readonly answers: ((isKept: boolean) => void)[]
}

export class VisitJournal {
  private readonly parts: JournalParts
  private readonly bounds: JournalBounds
  private handle: FileHandle | undefined
  private readonly uncounted: Set<number>
  private current: JournalPlace
  private waiting: Waiting = { lines: [], answers: [] }
  private waitingUnits = 0
  private writing: Promise<void> | undefined
  private isClosed = false
  private complainedAt = -QUIET_MS
  /** Called after lines were written. */
  onKept: () => void = () => undefined

  private constructor(parts: JournalParts, bounds: JournalBounds, files: readonly number[], after: number) {
    this.parts = parts
    this.bounds = bounds
    this.uncounted = new Set(files)
    this.current = { file: Math.max(after, ...files), octets: 0 }
  }

  /** @param after the file that was counted last */
  static async open(parts: JournalParts, after: number, bounds = BOUNDS): Promise<VisitJournal> {
    await mkdir(parts.folder, { recursive: true, mode: 0o700 })
    return new VisitJournal(parts, bounds, await journalFiles(parts.folder), after)
  }

  /** Up to where lines are on disk. */
  get end(): JournalPlace {
    return this.current
  }

  /** More than half of what may lie uncounted does. */
  get isFilling(): boolean {
    return this.uncounted.size > this.bounds.files / 2
  }

  /** Whether lines may still be appended to it. */
  isOpen(file: number): boolean {
    return file === this.current.file && this.handle !== undefined
  }

  /** @returns whether it is on disk */
  keep(visit: Visit): Promise<boolean> {
    const line = visitLine(visit)
    const hasRoom =
      this.waitingUnits + line.length <= this.bounds.waitingUnits && this.uncounted.size <= this.bounds.files
    if (this.isClosed || !hasRoom) {
      if (!this.isClosed) this.complain('more visits than can be counted')
      return Promise.resolve(false)
    }
    return new Promise(resolve => {
      this.waiting.lines.push(line)
      this.waiting.answers.push(resolve)
      this.waitingUnits += line.length
      this.writing ??= this.write()
    })
  }

  /** All of the file was counted, and it was deleted. */
  forget(file: number): void {
    this.uncounted.delete(file)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.writing
    await this.handle?.close()
    this.handle = undefined
  }

  private async write(): Promise<void> {
    while (this.waiting.lines.length > 0) {
      const { lines, answers } = this.waiting
      this.waiting = { lines: [], answers: [] }
      this.waitingUnits = 0
      const answer = (isKept: boolean) => {
        for (const resolve of answers) resolve(isKept)
      }
      const late = this.parts.clock.after(LONGEST_WAIT_MS, () => answer(false))
      const isKept = await this.append(Buffer.from(lines.join('')))
      late.cancel()
      answer(isKept)
      if (isKept) this.onKept()
      if (lines.length >= MANY_AT_ONCE) await pauseFor(COMPANY_MS)
    }
    // In one go with the last look at what waits: who comes next begins anew.
    this.writing = undefined
  }

  private async append(octets: Buffer): Promise<boolean> {
    try {
      const handle = this.handle ?? (await this.begin())
      await handle.appendFile(octets)
      this.current = { ...this.current, octets: this.current.octets + octets.length }
      if (this.current.octets >= this.bounds.fileOctets) await this.finish()
      return true
    } catch (error) {
      this.complain(describeError(error))
      // What was written of it may be half a line.
      await this.finish()
      return false
    }
  }

  private async begin(): Promise<FileHandle> {
    const file = this.current.file + 1
    const handle = await open(journalFile(this.parts.folder, file), APPENDED_DURABLY, 0o600)
    this.handle = handle
    this.current = { file, octets: 0 }
    this.uncounted.add(file)
    await syncFolder(this.parts.folder)
    return handle
  }

  private async finish(): Promise<void> {
    const { handle } = this
    this.handle = undefined
    await handle?.close().catch(() => undefined)
  }

  private complain(error: string): void {
    const now = this.parts.clock.monotonic()
    if (now - this.complainedAt < QUIET_MS) return
    this.complainedAt = now
    this.parts.log.error('visit not recorded', { error })
  }
}

const FILE_NAME = /^(\d{10})\.visits$/

export function journalFile(folder: string, file: number): string {
  return join(folder, `${String(file).padStart(10, '0')}.visits`)
}

/** Numbers of the files there are, the oldest first. */
export async function journalFiles(folder: string): Promise<number[]> {
  const names = await readdir(folder)
  return names
    .flatMap(name => FILE_NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
}

/** Else a crash of the machine takes the file's name along. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
