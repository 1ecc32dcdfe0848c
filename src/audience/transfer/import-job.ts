/**
 * Runs imports as a job of the appliance; idle while none are queued.
 *
 * Opened by `audience/resource.ts`. Resumes imports of exited processes immediately. Never fails; retries after an error.
 */
import { Worker } from '../../world/time/worker.js'
import { Importer, RECEIVING_MS, type ImporterParts } from './importer.js'

/** Interval of checks for stale files, whose upload was interrupted by a crash. */
const LONGEST_REST_MS = RECEIVING_MS / 24

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
