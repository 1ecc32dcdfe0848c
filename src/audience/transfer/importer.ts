/**
 * Works imports off: some rows at a time, each piece a transaction of some milliseconds, so that nobody else waits long.
 *
 * The job of `audience/resource.ts` runs it for as long as the appliance; the command line runs it where no server does. What a piece does
 * and how far the import has come with it are one transaction: a process that is gone is gone on for, and of two processes that do the
 * same piece one finds that it is done. Imports of several workspaces take turns, those of one wait for each other.
 * Fails: never for what is wrong with a file, which is how its import ends.
 */
import { AppError, describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread } from '../../world/threads.js'
import { pauseFor } from '../../world/time/clock.js'
import type { AudienceParts } from '../audience-parts.js'
import { applyRows } from './apply-rows.js'
import type { Import, ImportStatus, Rejection } from './import.js'
import {
  deleteImport,
  deleteImportParts,
  findImportBySeq,
  findImportPart,
  importWithNeedlessParts,
  insertRejections,
  updateImport,
  waitingImports,
} from './import-store.js'
import { ImportFault, ImportReader, type ReadRow } from './reading/import-reader.js'
import type { ImportedContact } from './reading/read-row.js'

export interface ImporterParts extends AudienceParts {
  readonly spawn: SpawnThread
  readonly log: Log
}

/** Imports under way at a time, of as many workspaces. */
const MOST_AT_ONCE = 4
/** Waiting ones that are looked at. */
const MOST_LOOKED_AT = 200
/** Rows of a piece; how many follows from how long the last one took. */
const FEWEST_ROWS = 50
const MOST_ROWS = 1_000
const PIECE_MS = 20
/** Between two pieces: nobody waits for one more than for whoever else writes. */
const REST_MS = 1
/** Until other processes are asked for imports that they have stored. */
const LOOK_EVERY_MS = 1_000
/** Where another process does the same: it is left to it. */
const OVERTAKEN_MS = 500
/** Rejected rows of an import that are kept; all are counted. */
export const MOST_REJECTIONS_KEPT = 10_000
/** A file whose upload a crash cut off is kept so long. */
const RECEIVING_MS = 86_400_000
/** Of a file that is done with, deleted in one go. */
const PARTS_AT_ONCE = 4

export class Importer {
  private readonly parts: ImporterParts
  private readonly active = new Map<number, ActiveImport>()
  private wakes = 0
  private wakeUp: () => void = () => {}

  constructor(parts: ImporterParts) {
    this.parts = parts
  }

  /** There is an import that waits. */
  wake(): void {
    this.wakes += 1
    this.wakeUp()
  }

  /** Until the signal comes. */
  async run(stopping: AbortSignal): Promise<void> {
    try {
      while (!stopping.aborted) {
        const { wakes } = this
        if (!(await this.step()) && wakes === this.wakes) await this.rest(stopping)
      }
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

  /** A piece of each import under way. @returns false where there is nothing to do */
  private async step(): Promise<boolean> {
    await this.choose()
    for (const one of this.active.values()) {
      if (await one.step()) await this.drop(one)
      await pauseFor(REST_MS)
    }
    return this.active.size > 0 || this.removeFile()
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
      if (!this.active.has(one.seq)) this.active.set(one.seq, new ActiveImport(this.parts, one))
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
        const one = await findImportBySeq(tx.db, seq)
        if (one?.status === 'receiving') await deleteImport(tx.db, seq)
      },
      { canWait: true },
    )
    await pauseFor(REST_MS)
    return true
  }

  private async rest(stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts
    const over = new AbortController()
    const version = database.foreignVersion()
    const stop = () => over.abort()
    this.wakeUp = stop
    stopping.addEventListener('abort', stop, { once: true })
    while (!over.signal.aborted && !stopping.aborted && version === database.foreignVersion())
      await clock.sleep(LOOK_EVERY_MS, over.signal)
    stopping.removeEventListener('abort', stop)
  }
}

/** Done already, by another process; or there is nothing to be done any more. */
class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

class ActiveImport {
  readonly seq: number
  private readonly parts: ImporterParts
  private readonly reader: ImportReader
  private rowsDone: number
  private size = FEWEST_ROWS

  constructor(parts: ImporterParts, { seq, charset, options, rowsDone }: Import) {
    this.seq = seq
    this.parts = parts
    this.rowsDone = rowsDone
    const { columns, hasHeading } = options
    this.reader = new ImportReader(parts.spawn, { charset, columns, hasHeading, skip: rowsDone }, part =>
      findImportPart(parts.database.reader, seq, part),
    )
  }

  close(): Promise<void> {
    return this.reader.close()
  }

  /** @returns whether it is over, as far as this process is concerned */
  async step(): Promise<boolean> {
    try {
      const rows = await this.reader.next(this.size)
      const isEnd = rows.length < this.size
      await this.write(rows, isEnd)
      return isEnd
    } catch (error) {
      if (error instanceof Overtaken) await pauseFor(OVERTAKEN_MS)
      else if (error instanceof ImportFault || isRefusal(error)) await this.fail(error.message)
      else await this.report(error)
      return true
    }
  }

  private async write(rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { clock, database } = this.parts
    let ms = 0
    await database.write(
      async tx => {
        const startedAt = clock.monotonic()
        await this.apply(tx, rows, isEnd)
        ms = clock.monotonic() - startedAt
      },
      { canWait: true },
    )
    this.rowsDone += rows.length
    const fitting = Math.round((this.size * PIECE_MS) / Math.max(1, ms))
    this.size = Math.max(FEWEST_ROWS, Math.min(MOST_ROWS, 2 * this.size, fitting))
  }

  private async apply(tx: Tx, rows: readonly ReadRow[], isEnd: boolean): Promise<void> {
    const { clock, newId, onEvents } = this.parts
    const one = await this.find(tx)
    const at = clock.now()
    const contacts = rows.filter((row): row is ImportedContact => !('reason' in row))
    const rejections = rows.filter((row): row is Rejection => 'reason' in row)
    const counts = await applyRows(tx, one, contacts, { at, newId })
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

  /** It stays as it is and is tried again. */
  private async report(error: unknown): Promise<void> {
    if (error instanceof Overtaken) return
    const { log, clock } = this.parts
    log.error('an import has stopped', { import: this.seq, error: describeError(error) })
    await clock.sleep(LOOK_EVERY_MS)
  }
}

function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && error.code !== 'unavailable'
}
