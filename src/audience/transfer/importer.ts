/**
 * Processes imports in batches of rows, each a transaction of a few milliseconds so that other writers are not delayed.
 *
 * Runs in the server (`ImportJob`) or the command line; files are parsed in a thread (`reading/`). A batch and its progress are one
 * transaction: another process can resume an import, and if two process the same batch, one of them notices. Imports of different
 * workspaces take turns; those of one workspace run one after another.
 * Invalid files do not make it throw; their import fails.
 */
import { createHash } from 'node:crypto'
import { AppError, describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import { normalizedAddress } from '../../mail/address.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread } from '../../world/threads.js'
import { pauseFor } from '../../world/time/clock.js'
import { Worker } from '../../world/time/worker.js'
import type { AudienceParts } from '../audience-parts.js'
import { applyRows } from './apply-rows.js'
import type { Import, ImportStatus, Rejection } from './import.js'
import {
  deleteErasures,
  deleteImport,
  deleteImportParts,
  listErasedHashes,
  findImportBySeq,
  findImportPart,
  findImportToClear,
  insertRejections,
  updateImport,
  listUnfinishedImports,
} from './import-store.js'
import { ImportFault, ImportReader, ReaderEnded } from './reading/import-reader.js'
import type { ImportedContact, ReadRow } from './reading/read-row.js'

export interface ImporterParts extends AudienceParts {
  readonly spawn: SpawnThread
  readonly log: Pick<Log, 'error'>
}

/** Concurrent imports, at most one per workspace. */
const MAX_CONCURRENT = 4
/** Queued imports read at a time. */
const MAX_QUEUED_READ = 200
/** Bounds of the batch size (`PieceSize`). */
const MIN_ROWS = 50
const MAX_ROWS = 1_000
/** Pause between batches: imports are less urgent than other writes. */
const REST_MS = 1
/** Delay after an error other than the file's; up to the maximum while the disk is full. */
const RETRY_MS = 1_000
const MAX_RETRY_MS = 10_000
/** Pause after another process was found working on the same import. */
const OVERTAKEN_MS = 500
/** Rejected rows stored per import; all are counted. */
export const MAX_REJECTIONS_KEPT = 10_000
/** How long an incomplete upload is kept after a crash. */
export const RECEIVING_MS = 86_400_000
/** An import whose reader thread exits this often fails, since it would exit there every time. */
const MAX_READER_ENDS = 2
/** Interval of checks for new imports while all running ones wait for their readers. */
const LOOK_EVERY_MS = 50
/** File parts deleted per transaction. */
const PARTS_AT_ONCE = 4

/** Interval of checks for stale files, whose upload was interrupted by a crash. */
const LONGEST_REST_MS = RECEIVING_MS / 24

/** Imports as a job of the appliance; idle while none are queued. Resumes those of exited processes. */
export class ImportJob {
  private readonly worker: Worker

  constructor(parts: ImporterParts) {
    this.worker = new Worker({
      ...parts,
      failure: 'importer failed',
      version: () => parts.database.changes.version('imports'),
      runPiece: async stopping => {
        await new Importer(parts).run(stopping)
        this.worker.resetBackoff()
        return parts.clock.now() + LONGEST_REST_MS
      },
    })
  }

  /** Call when an import was queued. */
  wake(): void {
    this.worker.wake()
  }

  /** Runs until aborted. */
  run(stopping: AbortSignal): Promise<void> {
    return this.worker.run(stopping)
  }
}

export class Importer {
  private readonly parts: ImporterParts
  private readonly active = new Map<number, ActiveImport>()
  /** Shared by all imports; keeps an error from being logged repeatedly. */
  private readonly trouble: Trouble = { lastLogged: undefined, readerEnds: new Map() }

  constructor(parts: ImporterParts) {
    this.parts = parts
  }

  /** Runs until there is nothing left to do or the signal aborts. */
  async run(stopping: AbortSignal): Promise<void> {
    try {
      while (!stopping.aborted && (await this.step()));
    } finally {
      await this.close()
    }
  }

  /** Runs one import until it ends or the signal aborts. */
  async finish(seq: number, stopping: AbortSignal): Promise<void> {
    const isDone = async () => (await findImportBySeq(this.parts.database.reader, seq))?.finishedAt !== null
    try {
      while (!stopping.aborted && !(await isDone())) await this.step()
    } finally {
      await this.close()
    }
  }

  /** Processes a batch of each running import. @returns false if there was nothing to do */
  private async step(): Promise<boolean> {
    await this.choose()
    const underWay = [...this.active.values()]
    const wasUnderWay = underWay.length > 0
    // A slow reader must not delay other imports.
    if (wasUnderWay) await Promise.race([...underWay.map(one => one.prepare()), pauseFor(LOOK_EVERY_MS)])
    for (const one of underWay) {
      if (!one.isReady) continue
      if (await one.step()) await this.drop(one)
      await pauseFor(REST_MS)
    }
    return wasUnderWay || this.removeFile()
  }

  /** Selects the oldest import of each workspace. */
  private async choose(): Promise<void> {
    const waiting = await listUnfinishedImports(this.parts.database.reader, MAX_QUEUED_READ)
    const first = new Map<string, Import>()
    for (const one of waiting) if (!first.has(one.workspaceId)) first.set(one.workspaceId, one)
    const chosen = [...first.values()].slice(0, MAX_CONCURRENT)
    for (const one of this.active.values())
      if (!chosen.some(({ seq }) => seq === one.seq)) await this.drop(one)
    for (const one of chosen)
      if (!this.active.has(one.seq)) this.active.set(one.seq, new ActiveImport(this.parts, one, this.trouble))
  }

  private async drop(one: ActiveImport): Promise<void> {
    this.active.delete(one.seq)
    await one.close()
  }

  private async close(): Promise<void> {
    for (const one of [...this.active.values()]) await this.drop(one)
  }

  /** Deletes parts of an unneeded file. @returns false if there is none */
  private async removeFile(): Promise<boolean> {
    const { database, clock } = this.parts
    const receivedBefore = clock.now() - RECEIVING_MS
    const seq = await findImportToClear(database.reader, receivedBefore)
    if (seq === undefined) return false
    await database.write(
      async tx => {
        await deleteImportParts(tx.db, seq, PARTS_AT_ONCE)
        await deleteErasures(tx.db, seq)
        const one = await findImportBySeq(tx.db, seq)
        if (one?.status === 'receiving') await deleteImport(tx.db, seq)
      },
      { isLong: true },
    )
    await pauseFor(REST_MS)
    return true
  }
}

/** Another process has done the batch, or the import has ended. */
class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

interface Trouble {
  lastLogged: string | undefined
  /** Reader thread exits by import. */
  readonly readerEnds: Map<number, number>
}

interface RowsToWrite {
  readonly rows: readonly ReadRow[]
  readonly isEnd: boolean
}

class ActiveImport {
  readonly seq: number
  private readonly parts: ImporterParts
  private readonly trouble: Trouble
  private readonly reader: ImportReader
  private readonly octets: number
  private rowsDone: number
  private readonly size: PieceSize
  /** Rows to write next; kept if writing fails. */
  private read: RowsToWrite | undefined
  /** The following rows, read in the background. */
  private ahead: Promise<RowsToWrite> | undefined
  private isAheadRead = false

  constructor(parts: ImporterParts, { seq, charset, options, octets, rowsDone }: Import, trouble: Trouble) {
    this.trouble = trouble
    this.octets = octets
    this.seq = seq
    this.parts = parts
    this.rowsDone = rowsDone
    this.size = new PieceSize(parts.clock, MIN_ROWS, MAX_ROWS)
    const { columns, hasHeading, order, everyRow } = options
    this.reader = new ImportReader(
      parts.spawn,
      { charset, columns, hasHeading, order, everyRow, skip: rowsDone },
      part => findImportPart(parts.database.reader, seq, part),
    )
  }

  close(): Promise<void> {
    return this.reader.close()
  }

  /** Whether a step would not wait for the reader. */
  get isReady(): boolean {
    return this.read !== undefined || this.isAheadRead
  }

  /** Waits for the reader. Never rejects. */
  async prepare(): Promise<void> {
    if (this.isReady) return
    this.ahead ??= this.readAhead()
    await this.ahead.catch(() => undefined)
  }

  /** @returns whether this process is done with the import */
  async step(): Promise<boolean> {
    try {
      this.read ??= await this.takeNext()
      const { rows, isEnd } = this.read
      const written = this.write(rows, isEnd)
      // Overlaps with writing these rows.
      if (!isEnd) this.ahead ??= this.readAhead()
      await written
      this.read = undefined
      return isEnd
    } catch (error) {
      if (error instanceof Overtaken) await pauseFor(OVERTAKEN_MS)
      else if (error instanceof ImportFault || isRefusal(error)) await this.fail(error.message)
      else if (error instanceof ReaderEnded) await this.readerEnded(error)
      else await this.report(error)
      return !isUnavailable(error)
    }
  }

  private takeNext(): Promise<RowsToWrite> {
    const next = this.ahead ?? this.readOn()
    this.ahead = undefined
    this.isAheadRead = false
    return next
  }

  private readAhead(): Promise<RowsToWrite> {
    const ahead = this.readOn()
    // Errors surface when the rows are awaited.
    const onRead = () => void (this.isAheadRead = true)
    ahead.then(onRead, onRead)
    return ahead
  }

  private async readOn(): Promise<RowsToWrite> {
    const read = await this.reader.next(this.size.rows)
    if (read.isEnd && this.reader.octetsHandedOver !== this.octets)
      throw new ImportFault('part of the file is missing; upload it again')
    return read
  }

  private async write(rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { database } = this.parts
    // The disk reserve is for accepted mail.
    database.storage.requireRoom()
    await this.size.measured(rows.length, measure =>
      database.write(tx => measure(() => this.apply(tx, rows, isEnd)), { isLong: true }),
    )
    this.rowsDone += rows.length
    this.trouble.lastLogged = undefined
  }

  private async apply(tx: Tx, rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { clock, newId, onEvents } = this.parts
    const one = await this.find(tx)
    const at = clock.now()
    const kept = withoutErased(rows, await listErasedHashes(tx.db, one.seq))
    const contacts = kept.filter((row): row is ImportedContact => !('reason' in row))
    const { counts, refused } = await applyRows(tx, one, contacts, { at, newId })
    const rejections = [...kept.filter((row): row is Rejection => 'reason' in row), ...refused]
    await insertRejections(
      tx.db,
      one.seq,
      rejections.slice(0, Math.max(0, MAX_REJECTIONS_KEPT - one.rejected)),
    )
    await updateImport(tx.db, {
      ...one,
      status: isEnd ? 'completed' : 'processing',
      octetsRead: isEnd ? one.octets : Math.max(one.octetsRead, this.reader.octetsRead),
      rowsDone: one.rowsDone + rows.length,
      created: one.created + counts.created,
      updated: one.updated + counts.updated,
      unchanged: one.unchanged + counts.unchanged,
      rejected: one.rejected + rejections.length,
      startedAt: one.startedAt ?? at,
      finishedAt: isEnd ? at : null,
    })
    tx.changed('imports')
    tx.onCommit(onEvents)
  }

  private async find(tx: Tx): Promise<Import> {
    const one = await findImportBySeq(tx.db, this.seq)
    if (!one || one.finishedAt !== null || one.rowsDone !== this.rowsDone) throw new Overtaken()
    return one
  }

  private async fail(error: string): Promise<void> {
    const { clock, database } = this.parts
    await database
      .write(async tx => {
        const [one, at] = [await this.find(tx), clock.now()]
        const failed: ImportStatus = 'failed'
        await updateImport(tx.db, {
          ...one,
          status: failed,
          error,
          startedAt: one.startedAt ?? at,
          finishedAt: at,
        })
        tx.changed('imports')
      })
      .catch((thrown: unknown) => this.report(thrown))
  }

  /** Retries once from where it stopped: the machine may have been short of memory. */
  private async readerEnded({ message }: ReaderEnded): Promise<void> {
    const { readerEnds } = this.trouble
    const ends = (readerEnds.get(this.seq) ?? 0) + 1
    readerEnds.set(this.seq, ends)
    this.parts.log.error('import reader exited', { import: this.seq, rows: this.rowsDone, error: message })
    if (ends < MAX_READER_ENDS) return
    readerEnds.delete(this.seq)
    await this.fail(
      `the file could not be read past row ${this.rowsDone}: its reader exited ${ends} times (${message}); ` +
        'shorten the following rows, or split the file',
    )
  }

  /** Logs the error; the import stays as it is and is retried. */
  private async report(error: unknown): Promise<void> {
    if (error instanceof Overtaken) return
    const { log, clock } = this.parts
    const text = describeError(error)
    if (this.trouble.lastLogged !== text) log.error('import interrupted', { import: this.seq, error: text })
    this.trouble.lastLogged = text
    const { retryAfterMs = 0 } = error instanceof AppError ? error : {}
    await clock.sleep(Math.min(MAX_RETRY_MS, Math.max(RETRY_MS, retryAfterMs)))
  }
}

/** Rejects rows of people erased since the import began, without keeping their cells. */
function withoutErased(rows: readonly ReadRow[], erased: ReadonlySet<string>): readonly ReadRow[] {
  if (erased.size === 0) return rows
  const isErased = (cell: string) => erased.has(createHash('sha256').update(cell).digest('hex'))
  return rows.map(row => {
    const isTheirs =
      'reason' in row ? row.cells.some(cell => isErased(normalizedAddress(cell.trim()))) : isErased(row.email)
    return isTheirs ? { line: row.line, reason: 'the address was erased', cells: [] } : row
  })
}

function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && error.code !== 'unavailable'
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
