/**
 * Runs imports as a job of the appliance; idle while none are queued.
 *
 * Opened by `audience/resource.ts`. Resumes imports of exited processes immediately. Where the database lends its write lock to threads,
 * the importer runs in a thread of its own (`import-main.ts`), started only when there is work. Never fails; a thread that
 * exits early is restarted.
 */
import { runWriting } from '../../db/threads/writing-thread.js'
import { importWithNeedlessParts, waitingImports } from './import-store.js'
import { AT_ONCE, Worker } from '../../world/time/worker.js'
import { Importer, RECEIVING_MS, type ImporterParts } from './importer.js'

/** Interval of checks for stale files, whose upload was interrupted by a crash. */
const LONGEST_REST_MS = RECEIVING_MS / 24

const PROGRAM = new URL('./import-main.js', import.meta.url)

export class ImportJob {
  private readonly parts: ImporterParts
  private readonly worker: Worker

  constructor(parts: ImporterParts) {
    this.parts = parts
    const { database } = parts
    this.worker = new Worker({
      ...parts,
      failure: 'import thread exited',
      runPiece: stopping => this.runPiece(stopping),
      version: () => database.foreignVersion(),
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

  private async runPiece(stopping: AbortSignal): Promise<number> {
    if (!(await this.hasWork())) return this.parts.clock.now() + LONGEST_REST_MS
    await this.work(stopping)
    this.worker.resetBackoff()
    return AT_ONCE
  }

  private async hasWork(): Promise<boolean> {
    const { database, clock } = this.parts
    if ((await waitingImports(database.reader, 1)).length > 0) return true
    return (await importWithNeedlessParts(database.reader, clock.now() - RECEIVING_MS)) !== undefined
  }

  private async work(stopping: AbortSignal): Promise<void> {
    const { database, spawn, log, clock, onEvents } = this.parts
    const { lending } = database
    if (!lending) return new Importer(this.parts).run(stopping)
    await runWriting({ spawn, log, lending, clock, onWritten: onEvents }, PROGRAM, stopping)
  }
}
