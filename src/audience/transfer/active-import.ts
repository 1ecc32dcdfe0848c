/**
 * One import at work: reads its file in a thread, and applies the rows in batches.
 *
 * A batch and its progress are one transaction. A dry run applies the rows of a batch in a transaction that it rolls back, and then records
 * their counts. Invalid files do not make it throw; their import fails.
 */
import { createHash } from 'node:crypto'
import { AppError, describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread } from '../../world/threads.js'
import { pauseFor } from '../../world/time/clock.js'
import type { AudienceParts } from '../audience-parts.js'
import { applyRows, type Applied } from './apply-rows.js'
import type { Column, Import, ImportStatus, Rejection } from './import.js'
import {
  listErasedHashes,
  findImportBySeq,
  findImportPart,
  insertRejections,
  saveImportOptions,
  updateImport,
} from './import-store.js'
import { addressIn } from './reading/import-address.js'
import { ImportFault, ImportReader, ReaderEnded } from './reading/import-reader.js'
import type { ImportedContact, ReadRow } from './reading/read-row.js'

export interface ImporterParts extends AudienceParts {
  readonly spawn: SpawnThread
  readonly log: Pick<Log, 'error'>
}

/** Bounds of the batch size (`PieceSize`). */
const MIN_ROWS = 50
const MAX_ROWS = 1_000
/** Delay after an error other than the file's; up to the maximum while the disk is full. */
const RETRY_MS = 1_000
const MAX_RETRY_MS = 10_000
/** Pause after another process was found working on the same import. */
const OVERTAKEN_MS = 500
/** Rejected rows stored per import; all are counted. */
export const MAX_REJECTIONS_KEPT = 10_000
/** An import whose reader thread exits this often fails, since it would exit there every time. */
const MAX_READER_ENDS = 2

/** Rolls back the rows of a dry run. */
class DryRun extends Error {
  override readonly name = 'DryRun'
  readonly tried: Tried

  constructor(tried: Tried) {
    super('dry run')
    this.tried = tried
  }
}

/** Result of a batch of rows, applied or tried. */
interface Tried extends Applied {
  /** Rows that could not be read, or whose person was erased. */
  readonly unread: readonly Rejection[]
}

/** Another process has done the batch, or the import has ended. */
class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

/** Shared by all imports of a process; keeps an error from being logged repeatedly. */
export interface Trouble {
  lastLogged: string | undefined
  /** Reader thread exits by import. */
  readonly readerEnds: Map<number, number>
}

interface RowsToWrite {
  readonly rows: readonly ReadRow[]
  readonly isEnd: boolean
}

/** One import being worked off by this process. */
export class ActiveImport {
  readonly seq: number
  private readonly parts: ImporterParts
  private readonly trouble: Trouble
  private readonly one: Import
  /** Undefined until the types of columns are found. */
  private reader: ImportReader | undefined
  private scan: ImportReader | undefined
  private isClosed = false
  private readonly octets: number
  private readonly isDryRun: boolean
  private rowsDone: number
  private readonly size: PieceSize
  /** Rows to write next; kept if writing fails. */
  private read: RowsToWrite | undefined
  /** The following rows, read in the background. */
  private ahead: Promise<RowsToWrite> | undefined
  private isAheadRead = false

  constructor(parts: ImporterParts, one: Import, trouble: Trouble) {
    const { seq, options, octets, rowsDone } = one
    this.one = one
    this.trouble = trouble
    this.octets = octets
    this.isDryRun = options.isDryRun
    this.seq = seq
    this.parts = parts
    this.rowsDone = rowsDone
    this.size = new PieceSize(parts.clock, MIN_ROWS, MAX_ROWS)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.scan?.close()
    await this.reader?.close()
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
    const reader = await this.openReader()
    const read = await reader.next(this.size.rows)
    if (read.isEnd && reader.octetsHandedOver !== this.octets)
      throw new ImportFault('part of the file is missing; upload it again')
    return read
  }

  /** The file is read twice if the types of its columns must fit all of their cells. */
  private async openReader(): Promise<ImportReader> {
    if (this.reader) return this.reader
    const { options } = this.one
    const columns = options.areTypesFound ? options.columns : await this.findTypes()
    if (this.isClosed) throw new Error('the import was closed')
    this.reader = this.readerOf(columns, false)
    return this.reader
  }

  private readerOf(columns: readonly Column[], isScan: boolean): ImportReader {
    const { spawn, database } = this.parts
    const { hasHeading, order, everyRow, types, rules, declared } = this.one.options
    return new ImportReader(
      spawn,
      {
        charset: this.one.charset,
        columns,
        hasHeading,
        order,
        everyRow,
        types,
        rules,
        declared,
        isScan,
        skip: isScan ? 0 : this.rowsDone,
      },
      part => findImportPart(database.reader, this.seq, part),
    )
  }

  /** @throws ImportFault for a chosen type that the file leaves in doubt */
  private async findTypes(): Promise<readonly Column[]> {
    this.scan = this.readerOf(this.one.options.columns, true)
    const columns = await this.scan.columns()
    await this.scan.close()
    await this.parts.database.write(async tx => {
      const { options } = await this.find(tx)
      // Another process finds the same.
      await saveImportOptions(tx.db, this.seq, { ...options, columns, areTypesFound: true })
      tx.changed('imports')
    })
    const inDoubt = columns.find(({ found }) => found?.ambiguous && found.type !== 'text')
    if (inDoubt) throw new ImportFault(doubtOf(inDoubt))
    return columns
  }

  private async write(rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { database } = this.parts
    // The disk reserve is for accepted mail.
    database.storage.requireRoom()
    const tried = this.isDryRun ? await this.tryRows(rows) : undefined
    await this.size.measured(rows.length, measure =>
      database.write(tx => measure(() => this.apply(tx, rows, isEnd, tried)), { isLong: true }),
    )
    this.rowsDone += rows.length
    this.trouble.lastLogged = undefined
  }

  /** Applies the rows and rolls them back, so that a dry run finds exactly what an import would. */
  private async tryRows(rows: readonly ReadRow[]): Promise<Tried> {
    try {
      return await this.parts.database.write(
        async tx => {
          throw new DryRun(await this.applyTo(tx, await this.find(tx), rows))
        },
        { isLong: true },
      )
    } catch (error) {
      if (error instanceof DryRun) return error.tried
      throw error
    }
  }

  private async applyTo(tx: Tx, one: Import, rows: readonly ReadRow[]): Promise<Tried> {
    const { clock, newId } = this.parts
    const kept = withoutErased(rows, await listErasedHashes(tx.db, one.seq))
    const contacts = kept.filter((row): row is ImportedContact => !('reason' in row))
    const unread = kept.filter((row): row is Rejection => 'reason' in row)
    return { unread, ...(await applyRows(tx, one, contacts, { at: clock.now(), newId })) }
  }

  /** @param tried of a dry run, whose rows are not applied again */
  private async apply(
    tx: Tx,
    rows: readonly ReadRow[],
    isEnd: boolean,
    tried: Tried | undefined,
  ): Promise<void> {
    const { clock, onEvents } = this.parts
    const one = await this.find(tx)
    const at = clock.now()
    const { counts, refused, unread } = tried ?? (await this.applyTo(tx, one, rows))
    const rejections = [...unread, ...refused]
    await insertRejections(
      tx.db,
      one.seq,
      rejections.slice(0, Math.max(0, MAX_REJECTIONS_KEPT - one.rejected)),
    )
    await updateImport(tx.db, {
      ...one,
      status: isEnd ? 'completed' : 'processing',
      octetsRead: isEnd ? one.octets : Math.max(one.octetsRead, this.reader?.octetsRead ?? 0),
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

function doubtOf({ name, found }: Column): string {
  const example = found?.examples.find(({ cell }) => /\D/.test(cell))?.cell ?? ''
  return found?.ambiguous === 'decimal'
    ? `the column ${name} may have a decimal point or comma (${example}); choose with decimal`
    : `the column ${name} may have the day or the month first (${example}); choose with date_format`
}

/** Rejects rows of people erased since the import began, without keeping their cells. */
function withoutErased(rows: readonly ReadRow[], erased: ReadonlySet<string>): readonly ReadRow[] {
  if (erased.size === 0) return rows
  const isErased = (cell: string) => erased.has(createHash('sha256').update(cell).digest('hex'))
  return rows.map(row => {
    const isTheirs = 'reason' in row ? row.cells.some(cell => isErased(addressIn(cell))) : isErased(row.email)
    return isTheirs ? { line: row.line, reason: 'the address was erased', cells: [] } : row
  })
}

function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && error.code !== 'unavailable'
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
