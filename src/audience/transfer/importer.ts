/**
 * Processes imports in batches of rows, each a transaction of a few milliseconds so that other writers are not delayed.
 *
 * Runs in the server (`ImportJob`) or the command line; files are parsed in a thread (`reading/`). A batch and its progress are one
 * transaction: another process can resume an import, and if two process the same batch, one of them notices. Imports of different
 * workspaces take turns; those of one workspace run one after another.
 * Invalid files do not make it throw; their import fails.
 */
import { pauseFor } from '../../world/time/clock.js'
import { Worker } from '../../world/time/worker.js'
import { ActiveImport, type ImporterParts, type Trouble } from './active-import.js'
import type { Import } from './import.js'
import {
  deleteErasures,
  deleteImport,
  deleteImportParts,
  findImportBySeq,
  findImportToClear,
  listUnfinishedImports,
} from './import-store.js'

/** Concurrent imports, at most one per workspace. */
export const MAX_CONCURRENT = 4
/** Queued imports read at a time. */
const MAX_QUEUED_READ = 200
/** Pause between batches: imports are less urgent than other writes. */
const REST_MS = 1
/** How long an incomplete upload is kept after a crash. */
export const RECEIVING_MS = 86_400_000
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
