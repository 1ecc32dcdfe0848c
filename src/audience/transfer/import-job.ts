/**
 * Runs imports as a job of the appliance; idle while none are queued.
 *
 * Opened by `audience/resource.ts`. Resumes imports of exited processes immediately. Where the database lends its write lock to threads,
 * the importer runs in a thread of its own (`import-main.ts`), started only when there is work. Never fails; a thread that
 * exits early is restarted.
 */
import { describeError } from '../../core/errors.js'
import { runWriting } from '../../db/threads/writing-thread.js'
import { importWithNeedlessParts, waitingImports } from './import-store.js'
import { Importer, RECEIVING_MS, type ImporterParts } from './importer.js'

/** Interval of checks for imports queued by other processes. */
const LOOK_EVERY_MS = 1_000
/** Interval of checks for stale files, whose upload was interrupted by a crash. */
const LONGEST_REST_MS = RECEIVING_MS / 24
/** Delay before restarting a thread that exited early. */
const RETRY_MS = 1_000

const PROGRAM = new URL('./import-main.js', import.meta.url)

export class ImportJob {
  private readonly parts: ImporterParts
  private wakes = 0
  private wakeUp: () => void = () => {}

  constructor(parts: ImporterParts) {
    this.parts = parts
  }

  /** Call when an import was queued. */
  wake(): void {
    this.wakes += 1
    this.wakeUp()
  }

  /** Runs until aborted. */
  async run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const { wakes } = this
      // Read before checking for work, so that concurrent commits of other processes are not missed.
      const version = this.parts.database.foreignVersion()
      if (await this.hasWork()) await this.work(stopping)
      else if (wakes === this.wakes) await this.rest(version, stopping)
    }
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
    try {
      await runWriting({ spawn, log, lending, clock, onWritten: onEvents }, PROGRAM, stopping)
    } catch (error) {
      log.error('import thread exited', { error: describeError(error) })
      await clock.sleep(RETRY_MS, stopping)
    }
  }

  private async rest(version: number, stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts
    const end = clock.monotonic() + LONGEST_REST_MS
    const over = new AbortController()
    const stop = () => over.abort()
    this.wakeUp = stop
    stopping.addEventListener('abort', stop, { once: true })
    const isOver = () => over.signal.aborted || stopping.aborted || clock.monotonic() >= end
    while (!isOver() && version === database.foreignVersion()) await clock.sleep(LOOK_EVERY_MS, over.signal)
    stopping.removeEventListener('abort', stop)
  }
}
