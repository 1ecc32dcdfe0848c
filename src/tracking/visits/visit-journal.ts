/**
 * The visit journal: append-only files beside the database that hold visits until they are counted.
 *
 * The response to a click waits until its line is on disk, and never for the database. Visits that arrive during a write share the
 * next one (group commit). Every start begins a new file, so nothing is appended after a line that a crash cut off. Memory and disk use
 * are bounded; visits beyond the bounds are dropped, and the reader is redirected all the same.
 * `VisitJournal` writes, `VisitReader` reads and deletes counted files. File errors reject, except in `append`, which resolves to false.
 */
import { constants } from 'node:fs'
import { mkdir, open, readdir, type FileHandle, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import { pauseFor, type Clock } from '../../world/time/clock.js'

/** A request for the pixel or a link of a message, by a person or a machine. */
export interface Visit {
  readonly kind: 'open' | 'click'
  readonly messageId: string
  /** Ms since epoch UTC. */
  readonly at: number
  readonly address: string
  /** At most 500 characters. */
  readonly userAgent: string
  /** A HEAD request, which no mail reader sends. */
  readonly isHead: boolean
  readonly url?: string
}

/** One line of JSON, including the line break. */
export function visitLine({ kind, messageId, at, address, userAgent, isHead, url }: Visit): string {
  return `${JSON.stringify([kind, messageId, at, address, userAgent, isHead ? 1 : 0, url])}\n`
}

/** @param line without its line break @returns undefined if malformed */
export function readVisitLine(line: string): Visit | undefined {
  const [kind, messageId, at, address, userAgent, isHead, url] = parseArray(line)
  if (kind !== 'open' && kind !== 'click') return undefined
  if (typeof messageId !== 'string' || typeof at !== 'number') return undefined
  if (typeof address !== 'string' || typeof userAgent !== 'string') return undefined
  const visit = { kind, messageId, at, address, userAgent, isHead: isHead === 1 } as const
  return typeof url === 'string' ? { ...visit, url } : visit
}

function parseArray(line: string): readonly unknown[] {
  try {
    const values: unknown = JSON.parse(line)
    return Array.isArray(values) ? (values as readonly unknown[]) : []
  } catch {
    return []
  }
}

export interface JournalParts {
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}

/** A position in the journal: the end of a line. */
export interface JournalPosition {
  readonly file: number
  /** Offset in the file. */
  readonly octets: number
}

export function visitsFolder(dataDir: string): string {
  return join(dataDir, 'visits')
}

export interface JournalBounds {
  /** Size at which a file is closed and the next one begun. */
  readonly fileOctets: number
  /** Maximum number of files not fully counted. */
  readonly files: number
  /** Maximum length of lines waiting to be written, in UTF-16 units. */
  readonly waitingUnits: number
}

const BOUNDS: JournalBounds = { fileOctets: 16 * 1_024 * 1_024, files: 32, waitingUnits: 8 * 1_024 * 1_024 }
/** After this the response is sent even if the write is not done. */
const MAX_WAIT_MS = 500
/** After a write of this many visits, the next one waits briefly to collect more. */
const BUSY_BATCH = 4
const COLLECT_MS = 1
/** O_DSYNC: one thread pool round trip instead of a write and a sync. */
const APPEND_SYNCED =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND | constants.O_DSYNC
/** At most one log line per minute. */
const LOG_INTERVAL_MS = 60_000

interface Waiting {
  readonly lines: string[]
  readonly answers: ((isKept: boolean) => void)[]
}

export class VisitJournal {
  private readonly parts: JournalParts
  private readonly bounds: JournalBounds
  private handle: FileHandle | undefined
  private readonly uncounted: Set<number>
  private current: JournalPosition
  private waiting: Waiting = { lines: [], answers: [] }
  private waitingUnits = 0
  private writing: Promise<void> | undefined
  private isClosed = false
  private loggedAt = -LOG_INTERVAL_MS
  /** Called after lines were written. */
  onAppend: () => void = () => undefined

  private constructor(parts: JournalParts, bounds: JournalBounds, files: readonly number[], after: number) {
    this.parts = parts
    this.bounds = bounds
    this.uncounted = new Set(files)
    this.current = { file: Math.max(after, ...files), octets: 0 }
  }

  /** @param after the last file counted */
  static async open(parts: JournalParts, after: number, bounds = BOUNDS): Promise<VisitJournal> {
    await mkdir(parts.folder, { recursive: true, mode: 0o700 })
    return new VisitJournal(parts, bounds, await journalFiles(parts.folder), after)
  }

  /** Everything before it is on disk. */
  get end(): JournalPosition {
    return this.current
  }

  /** More than half of the allowed files are uncounted. */
  get isFilling(): boolean {
    return this.uncounted.size > this.bounds.files / 2
  }

  /** Whether lines may still be appended to this file. */
  isOpen(file: number): boolean {
    return file === this.current.file && this.handle !== undefined
  }

  /** @returns whether the visit is on disk */
  append(visit: Visit): Promise<boolean> {
    const line = visitLine(visit)
    const hasRoom =
      this.waitingUnits + line.length <= this.bounds.waitingUnits && this.uncounted.size <= this.bounds.files
    if (this.isClosed || !hasRoom) {
      if (!this.isClosed) this.logFailure('visits arrive faster than they are counted')
      return Promise.resolve(false)
    }
    return new Promise(resolve => {
      this.waiting.lines.push(line)
      this.waiting.answers.push(resolve)
      this.waitingUnits += line.length
      this.writing ??= this.write()
    })
  }

  /** The file was fully counted and deleted. */
  fileDeleted(file: number): void {
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
      const late = this.parts.clock.after(MAX_WAIT_MS, () => answer(false))
      const isKept = await this.writeLines(Buffer.from(lines.join('')))
      late.cancel()
      answer(isKept)
      if (isKept) this.onAppend()
      if (lines.length >= BUSY_BATCH) await pauseFor(COLLECT_MS)
    }
    // Synchronous with the last check of the queue, so the next visit starts a new write.
    this.writing = undefined
  }

  private async writeLines(octets: Buffer): Promise<boolean> {
    try {
      const handle = this.handle ?? (await this.openNextFile())
      await handle.appendFile(octets)
      this.current = { ...this.current, octets: this.current.octets + octets.length }
      if (this.current.octets >= this.bounds.fileOctets) await this.closeFile()
      return true
    } catch (error) {
      this.logFailure(describeError(error))
      // The last line may be incomplete.
      await this.closeFile()
      return false
    }
  }

  private async openNextFile(): Promise<FileHandle> {
    const file = this.current.file + 1
    const handle = await open(journalFile(this.parts.folder, file), APPEND_SYNCED, 0o600)
    this.handle = handle
    this.current = { file, octets: 0 }
    this.uncounted.add(file)
    await syncFolder(this.parts.folder)
    return handle
  }

  private async closeFile(): Promise<void> {
    const { handle } = this
    this.handle = undefined
    await handle?.close().catch(() => undefined)
  }

  private logFailure(error: string): void {
    const now = this.parts.clock.monotonic()
    if (now - this.loggedAt < LOG_INTERVAL_MS) return
    this.loggedAt = now
    this.parts.log.error('visit not recorded', { error })
  }
}

const FILE_NAME = /^(\d{10})\.visits$/

export function journalFile(folder: string, file: number): string {
  return join(folder, `${String(file).padStart(10, '0')}.visits`)
}

export async function journalFiles(folder: string): Promise<number[]> {
  const names = await readdir(folder)
  return names
    .flatMap(name => FILE_NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
}

/** Makes the new directory entry survive a power failure. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export interface ReadVisit {
  readonly visit: Visit
  /** The end of its line. */
  readonly end: JournalPosition
}

const READ_SIZE = 64 * 1_024
const LINE_BREAK = 0x0a

export class VisitReader {
  private readonly folder: string
  private readonly journal: VisitJournal
  private position: JournalPosition

  /** @param position everything before it is counted */
  constructor(folder: string, journal: VisitJournal, position: JournalPosition) {
    this.folder = folder
    this.journal = journal
    this.position = position
  }

  /** @returns the next visits, at most 64 KB of lines; empty if there are none yet */
  async read(): Promise<readonly ReadVisit[]> {
    for (;;) {
      const isOpen = this.journal.isOpen(this.position.file)
      const found = await this.readLines(isOpen)
      if (found.length > 0 || isOpen || !(await this.toNextFile())) return found
    }
  }

  /** Deletes fully counted files. @param counted everything before it is counted */
  async deleteBefore(counted: JournalPosition): Promise<void> {
    for (const file of await journalFiles(this.folder)) {
      if (file >= counted.file) return
      await rm(journalFile(this.folder, file), { force: true })
      this.journal.fileDeleted(file)
    }
  }

  private async toNextFile(): Promise<boolean> {
    const next = (await journalFiles(this.folder)).find(file => file > this.position.file)
    if (next === undefined) return false
    this.position = { file: next, octets: 0 }
    return true
  }

  private async readLines(isOpen: boolean): Promise<ReadVisit[]> {
    // In the file being written, read only what is on disk.
    const known = isOpen ? this.journal.end.octets - this.position.octets : READ_SIZE
    if (known <= 0) return []
    const octets = await readOctets(
      journalFile(this.folder, this.position.file),
      this.position.octets,
      Math.min(known, READ_SIZE),
    )
    const visits: ReadVisit[] = []
    let from = 0
    for (let at = octets.indexOf(LINE_BREAK); at >= 0; at = octets.indexOf(LINE_BREAK, from)) {
      const end = { file: this.position.file, octets: this.position.octets + at + 1 }
      const visit = readVisitLine(octets.toString('utf8', from, at))
      if (visit) visits.push({ visit, end })
      from = at + 1
    }
    this.position = { ...this.position, octets: this.position.octets + from }
    return visits
  }
}

/** @returns empty if the file does not exist, e.g. after an older database was restored */
async function readOctets(path: string, from: number, count: number): Promise<Buffer> {
  const handle = await open(path, 'r').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (!handle) return Buffer.alloc(0)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(count), 0, count, from)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
