/**
 * Imports as a job of the appliance: sees to it that those that wait are worked off, and rests while there are none.
 *
 * Opened by `audience/resource.ts`; lasts as long as the appliance, and goes on at once with what a process that is gone has left. Where the
 * database lends turns to threads the importer has one of its own (`import-main.ts`), there only while there is something to
 * import. Fails: never; a thread that ends before its time is followed by the next.
 */
import { describeError } from '../../core/errors.js'
import { runWriting } from '../../db/threads/writing-thread.js'
import { importWithNeedlessParts, waitingImports } from './import-store.js'
import { Importer, RECEIVING_MS, type ImporterParts } from './importer.js'

/** Until other processes are asked for imports that they have stored. */
const LOOK_EVERY_MS = 1_000
/** Until it looks by itself for what became old meanwhile: a file whose upload a crash cut off. */
const LONGEST_REST_MS = RECEIVING_MS / 24
/** After a thread has ended before its time. */
const RETRY_MS = 1_000

const PROGRAM = new URL('./import-main.js', import.meta.url)

export class ImportJob {
  private readonly parts: ImporterParts
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
    while (!stopping.aborted) {
      const { wakes } = this
      // As it was before the look, so that nothing is missed that another process commits meanwhile.
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
