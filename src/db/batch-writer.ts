/**
 * Records finished work in batches. A batch is whatever is pending when its transaction begins, so its size follows the load.
 *
 * Used for delivery outcomes, webhook attempts and visits. While the database is temporarily unavailable (locked, disk full),
 * items stay here and are retried with back-off. Any other error is caused by an item: the batch is halved until that item is alone, which
 * is then recorded by the fallbacks or, if those fail too, abandoned. Never throws.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { LogEvent } from '../world/log-events.js'
import { pauseFor } from '../world/time/clock.js'
import type { Tx } from './database.js'
import type { Services } from './services.js'

const RETRY: BackoffPolicy = { firstMs: 200, factor: 2, maxMs: 30_000 }

export type BatchWriterParts = Pick<Services, 'database' | 'clock' | 'random' | 'log'>

export interface Batching<T, R> {
  readonly events: {
    readonly writeFailed: LogEvent<'error'>
    /** Logged for an item that a fallback recorded. */
    readonly incomplete?: LogEvent<'error'>
    readonly abandoned: LogEvent<'error'>
  }
  /** Maximum items per transaction: a few ms of work. */
  readonly size: number
  /** Pause after a batch of several items, so that more share the next commit; none if absent. */
  readonly gatherMs?: number
  /**
   * @param isRepeated an earlier try failed, so its first items may be recorded already: a commit whose answer was lost,
   * as in a failover. These are to be passed over
   */
  readonly record: (tx: Tx, batch: readonly T[], isRepeated: boolean) => Promise<R>
  /** Tried in order for an item that `record` rejects; each records less of it. */
  readonly fallbacks?: readonly ((tx: Tx, item: T) => Promise<R>)[]
  /** Called after the commit. */
  readonly onRecorded: (batch: readonly T[], result: R) => void
  /** Called if nothing of the item could be recorded. */
  readonly onAbandoned: (item: T) => void
  /** Identifies the item in the log. */
  readonly describe: (item: T) => Readonly<Record<string, string | number>>
}

class Unavailable extends Error {}

export class BatchWriter<T, R> {
  private readonly parts: BatchWriterParts
  private readonly batching: Batching<T, R>
  private readonly waiting: T[] = []
  private running: Promise<void> | undefined
  /** Size of the next batch; small after a failure, doubled by each success. */
  private size: number
  private failures = 0
  /** So many of the first items may be recorded already. */
  private doubtful = 0

  constructor(parts: BatchWriterParts, batching: Batching<T, R>) {
    this.parts = parts
    this.batching = batching
    this.size = batching.size
  }

  add(item: T): void {
    this.waiting.push(item)
    this.running ??= this.run()
  }

  get pending(): number {
    return this.waiting.length
  }

  /** Whether the last write failed because the database was unavailable. */
  get isFailing(): boolean {
    return this.failures > 0
  }

  /** Resolves when everything added is recorded or abandoned. */
  async idle(): Promise<void> {
    while (this.running) await this.running
  }

  private async run(): Promise<void> {
    const { gatherMs = 0 } = this.batching
    while (this.waiting.length > 0) {
      const recorded = await this.writeNext()
      if (gatherMs > 0 && recorded > 1) await pauseFor(gatherMs)
    }
    // Synchronous with the last check, so that the next item starts another run.
    this.running = undefined
  }

  /** @returns number of items recorded */
  private async writeNext(): Promise<number> {
    const { record, size, onRecorded } = this.batching
    let batch: readonly T[] = []
    try {
      const result = await this.write(tx => {
        batch = this.waiting.slice(0, this.size)
        return record(tx, batch, this.doubtful > 0)
      })
      this.waiting.splice(0, batch.length)
      this.doubtful = Math.max(0, this.doubtful - batch.length)
      this.failures = 0
      this.size = Math.min(size, 2 * this.size)
      onRecorded(batch, result)
      return batch.length
    } catch (error) {
      this.doubtful = Math.max(this.doubtful, batch.length)
      if (error instanceof Unavailable) await this.backOff(error.cause)
      else if (batch.length > 1) this.size = Math.ceil(batch.length / 2)
      else for (const item of batch) await this.recordAlone(item, error)
      return 0
    }
  }

  /** Throws `Unavailable` for failures that the values cannot cause. */
  private async write(work: (tx: Tx) => Promise<R>): Promise<R> {
    const progress = { hasBegun: false }
    try {
      return await this.parts.database.write(tx => {
        progress.hasBegun = true
        return work(tx)
      })
    } catch (error) {
      if (progress.hasBegun && !this.parts.database.isTransient(error)) throw error
      throw new Unavailable('database unavailable', { cause: error })
    }
  }

  /** Records the first pending item alone. */
  private async recordAlone(item: T, cause: unknown): Promise<void> {
    const { events, fallbacks = [], onRecorded, onAbandoned, describe } = this.batching
    const { log } = this.parts
    const fields = { ...describe(item), error: describeError(cause) }
    for (const [index, fallback] of fallbacks.entries()) {
      const result = await this.tryFallback(tx => fallback(tx, item))
      if (!result) continue
      if (events.incomplete) log.error(events.incomplete, { ...fields, fallback: index + 1 })
      this.shift()
      onRecorded([item], result.value)
      return
    }
    log.error(events.abandoned, fields)
    this.shift()
    onAbandoned(item)
  }

  private shift(): void {
    this.waiting.shift()
    this.doubtful = Math.max(0, this.doubtful - 1)
  }

  /** @returns undefined if the item cannot be recorded this way either */
  private async tryFallback(work: (tx: Tx) => Promise<R>): Promise<{ readonly value: R } | undefined> {
    try {
      const value = await this.write(work)
      this.failures = 0
      return { value }
    } catch (error) {
      if (!(error instanceof Unavailable)) return undefined
      await this.backOff(error.cause)
      return this.tryFallback(work)
    }
  }

  private async backOff(error: unknown): Promise<void> {
    const { clock, random, log } = this.parts
    this.failures += 1
    const retryInMs = retryDelayMs(RETRY, this.failures, random.fraction())
    log.error(this.batching.events.writeFailed, {
      waiting: this.waiting.length,
      error: describeError(error),
      retryInMs,
    })
    await clock.sleep(retryInMs)
  }
}
