/**
 * Works imports off: some rows at a time, each piece a transaction of some milliseconds, so that nobody else waits long.
 *
 * Run in a thread by the server (`import-main.ts`), and by the command line where no server does (`import-job.ts`). What a piece does
 * and how far the import has come with it are one transaction: a process that is gone is gone on for, and of two processes that do the
 * same piece one finds that it is done. Imports of several workspaces take turns, those of one wait for each other.
 * Fails: never for what is wrong with a file, which is how its import ends.
 */
import { createHash } from 'node:crypto'
import { AppError, describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import { normalizedAddress } from '../../mail/address.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread } from '../../world/threads.js'
import { pauseFor } from '../../world/time/clock.js'
import type { AudienceParts } from '../audience-parts.js'
import { applyRows, attributeText } from './apply-rows.js'
import type { Import, ImportStatus, Rejection } from './import.js'
import {
  deleteErasures,
  deleteImport,
  deleteImportParts,
  erasedDuring,
  findImportBySeq,
  findImportPart,
  importWithNeedlessParts,
  insertRejections,
  updateImport,
  waitingImports,
} from './import-store.js'
import { ImportFault, ImportReader, ReaderEnded } from './reading/import-reader.js'
import type { ReadRow } from './reading/import-reader-protocol.js'
import { attributeOf } from './reading/columns.js'
import { rejected, type ImportedContact } from './reading/read-row.js'

export interface ImporterParts extends AudienceParts {
  readonly spawn: SpawnThread
  readonly log: Pick<Log, 'error'>
  /** Between two pieces, for whoever else writes; 0 where it is the server that gives each piece its turn. */
  readonly restMs?: number
}

/** Imports under way at a time, of as many workspaces. */
const MOST_AT_ONCE = 4
/** Waiting ones that are looked at. */
const MOST_LOOKED_AT = 200
/** Rows of a piece (`PieceSize`). */
const FEWEST_ROWS = 50
const MOST_ROWS = 1_000
/** Longer than other work's: what is the same for each piece is a good part of it, and others see 5 ms more at the most. */
const PIECE_MS = 12
/** Nobody waits for a piece more than for whoever else writes. */
const REST_MS = 1
/** After a fault that is not the file's; where there is no room for it, it is asked for that rarely. */
const RETRY_MS = 1_000
const MOST_RETRY_MS = 10_000
/** Where another process does the same: it is left to it. */
const OVERTAKEN_MS = 500
/** Rejected rows of an import that are kept; all are counted. */
export const MOST_REJECTIONS_KEPT = 10_000
/** A file whose upload a crash cut off is kept so long. */
export const RECEIVING_MS = 86_400_000
/** An import whose reading thread ends so often fails: it would end there every time. */
const MOST_READER_ENDS = 2
/** Until imports that were queued meanwhile are looked for, where all under way wait for their readers. */
const LOOK_EVERY_MS = 50
/** Of a file that is done with, deleted in one go. */
const PARTS_AT_ONCE = 4

export class Importer {
  private readonly parts: ImporterParts
  private readonly active = new Map<number, ActiveImport>()
  /** What stood in the way last, and was told. */
  private readonly trouble: Trouble = { told: undefined, readerEnds: new Map() }

  constructor(parts: ImporterParts) {
    this.parts = parts
  }

  /** Until there is nothing left to do, or the signal comes. */
  async run(stopping: AbortSignal): Promise<void> {
    try {
      while (!stopping.aborted && (await this.step()));
    } finally {
      await this.close()
    }
  }

  /** One import, to its end or until the signal comes. */
  async finish(seq: number, stopping: AbortSignal): Promise<void> {
    const isDone = async () => (await findImportBySeq(this.parts.database.reader, seq))?.finishedAt !== null
    try {
      while (!stopping.aborted && !(await isDone())) await this.step()
    } finally {
      await this.close()
    }
  }

  /** A piece of each import under way. @returns false where there was nothing to do: what failed is to be tried again */
  private async step(): Promise<boolean> {
    await this.choose()
    const underWay = [...this.active.values()]
    const wasUnderWay = underWay.length > 0
    // A file that takes long to read delays no other.
    if (wasUnderWay) await Promise.race([...underWay.map(one => one.prepare()), pauseFor(LOOK_EVERY_MS)])
    for (const one of underWay) {
      if (!one.isReady) continue
      if (await one.step()) await this.drop(one)
      await this.rest()
    }
    return wasUnderWay || this.removeFile()
  }

  /** Of each workspace the one that came first. */
  private async choose(): Promise<void> {
    const waiting = await waitingImports(this.parts.database.reader, MOST_LOOKED_AT)
    const first = new Map<string, Import>()
    for (const one of waiting) if (!first.has(one.workspaceId)) first.set(one.workspaceId, one)
    const chosen = [...first.values()].slice(0, MOST_AT_ONCE)
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

  /** @returns false where no file lies about that nobody needs */
  private async removeFile(): Promise<boolean> {
    const { database, clock } = this.parts
    const receivedBefore = clock.now() - RECEIVING_MS
    const seq = await importWithNeedlessParts(database.reader, receivedBefore)
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
    await this.rest()
    return true
  }

  private async rest(): Promise<void> {
    const { restMs = REST_MS } = this.parts
    if (restMs > 0) await pauseFor(restMs)
  }
}

/** Done already, by another process; or there is nothing to be done any more. */
class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

interface Trouble {
  told: string | undefined
  /** By import: how often the thread that reads it has ended. */
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
  /** Rows that are to be written next: they are kept where they cannot be at the moment. */
  private read: RowsToWrite | undefined
  /** Those after them, read while these wait for their turn. */
  private ahead: Promise<RowsToWrite> | undefined
  private isAheadRead = false

  constructor(parts: ImporterParts, { seq, charset, options, octets, rowsDone }: Import, trouble: Trouble) {
    this.trouble = trouble
    this.octets = octets
    this.seq = seq
    this.parts = parts
    this.rowsDone = rowsDone
    this.size = new PieceSize(parts.clock, FEWEST_ROWS, MOST_ROWS, PIECE_MS)
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

  /** Whether a step need not wait for the reader. */
  get isReady(): boolean {
    return this.read !== undefined || this.isAheadRead
  }

  /** Resolves once it is ready. Never rejects. */
  async prepare(): Promise<void> {
    if (this.isReady) return
    this.ahead ??= this.readAhead()
    await this.ahead.catch(() => undefined)
  }

  /** @returns whether it is over, as far as this process is concerned */
  async step(): Promise<boolean> {
    try {
      this.read ??= await this.takeNext()
      const { rows, isEnd } = this.read
      const written = this.write(rows, isEnd)
      // While they wait for their turn.
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
    // What it fails with is told where the rows are wanted.
    const onRead = () => void (this.isAheadRead = true)
    ahead.then(onRead, onRead)
    return ahead
  }

  private async readOn(): Promise<RowsToWrite> {
    const read = await this.reader.next(this.size.rows)
    if (read.isEnd && this.reader.octetsHandedOver !== this.octets)
      throw new ImportFault('a part of the file is not there any more; send it again')
    return read
  }

  private async write(rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { database } = this.parts
    await this.size.measured(rows.length, measure =>
      database.write(tx => measure(() => this.apply(tx, rows, isEnd)), { isLong: true }),
    )
    this.rowsDone += rows.length
    this.trouble.told = undefined
  }

  private async apply(tx: Tx, rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { clock, newId, onEvents } = this.parts
    const one = await this.find(tx)
    const at = clock.now()
    const kept = withoutErased(rows, await erasedDuring(tx.db, one.seq))
    const contacts = kept.filter((row): row is ImportedContact => !('reason' in row))
    const { counts, refused } = await applyRows(tx, one, contacts, { at, newId })
    const rejections = [
      ...kept.filter((row): row is Rejection => 'reason' in row),
      ...refused.map(row => noRoomFor(one, row)),
    ]
    await insertRejections(
      tx.db,
      one.seq,
      rejections.slice(0, Math.max(0, MOST_REJECTIONS_KEPT - one.rejected)),
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
    tx.onCommit(onEvents)
  }

  /** @throws Overtaken */
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
      })
      .catch((thrown: unknown) => this.report(thrown))
  }

  /** Retried once from where it stopped: the machine may have been short of memory. */
  private async readerEnded({ message }: ReaderEnded): Promise<void> {
    const { readerEnds } = this.trouble
    const ends = (readerEnds.get(this.seq) ?? 0) + 1
    readerEnds.set(this.seq, ends)
    this.parts.log.error('import reader exited', { import: this.seq, rows: this.rowsDone, error: message })
    if (ends < MOST_READER_ENDS) return
    readerEnds.delete(this.seq)
    await this.fail(
      `the file could not be read past row ${this.rowsDone}: its reader ended ${ends} times (${message}); ` +
        'shorten the rows there, or split the file',
    )
  }

  /** It stays as it is and is tried again. */
  private async report(error: unknown): Promise<void> {
    if (error instanceof Overtaken) return
    const { log, clock } = this.parts
    const text = describeError(error)
    if (this.trouble.told !== text) log.error('import interrupted', { import: this.seq, error: text })
    this.trouble.told = text
    const { retryAfterMs = 0 } = error instanceof AppError ? error : {}
    await clock.sleep(Math.min(MOST_RETRY_MS, Math.max(RETRY_MS, retryAfterMs)))
  }
}

/** Rows of people erased since the import was begun are counted as rejected, and nothing of them is kept. */
function withoutErased(rows: readonly ReadRow[], erased: ReadonlySet<string>): readonly ReadRow[] {
  if (erased.size === 0) return rows
  const isErased = (cell: string) => erased.has(createHash('sha256').update(cell).digest('hex'))
  return rows.map(row => {
    const isTheirs =
      'reason' in row ? row.cells.some(cell => isErased(normalizedAddress(cell.trim()))) : isErased(row.email)
    return isTheirs ? { line: row.line, reason: 'the address was erased', cells: [] } : row
  })
}

/** Cells as the file may have had them, to be sent again. */
function noRoomFor({ options: { columns } }: Import, row: ImportedContact): Rejection {
  const { line, email, firstName, lastName, subscribed, tags } = row
  const attributes = row.attributes ?? {}
  const said: Readonly<Record<string, string>> = {
    ...{ email, first_name: firstName ?? '', last_name: lastName ?? '', tags: tags.join(', ') },
    ...{ subscribed: subscribed === null ? '' : String(subscribed), attributes: JSON.stringify(attributes) },
  }
  const cells = columns.map(({ field }) => {
    const attribute = field === null ? undefined : attributeOf(field)
    if (attribute === undefined) return said[field ?? ''] ?? ''
    return Object.hasOwn(attributes, attribute) ? attributeText(attributes[attribute]) : ''
  })
  return rejected({ line, cells }, 'the attributes that the contact has leave no room for these')
}

function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && error.code !== 'unavailable'
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
