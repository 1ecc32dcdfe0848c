/**
 * Writes ended attempts down in batches: whatever has ended when a transaction begins is in it.
 *
 * Used by the delivery worker. When the database cannot write nothing is lost: attempts stay here and are tried again, and since each
 * keeps its delivery under way, no more begin than there is room for. Fails: never.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import type { WebhookParts } from '../webhook-parts.js'

const BATCH = 200
const RETRY: BackoffPolicy = { firstMs: 200, factor: 2, maxMs: 30_000 }

type BatchParts = Pick<WebhookParts, 'database' | 'clock' | 'random' | 'log'>

export class AttemptBatches<T> {
  private readonly parts: BatchParts
  private readonly record: (tx: Tx, batch: readonly T[]) => Promise<void>
  private readonly onDisk: (batch: readonly T[]) => void
  private waiting: T[] = []
  private running: Promise<void> | undefined

  /** @param onDisk after the commit */
  constructor(
    parts: BatchParts,
    record: (tx: Tx, batch: readonly T[]) => Promise<void>,
    onDisk: (batch: readonly T[]) => void,
  ) {
    this.parts = parts
    this.record = record
    this.onDisk = onDisk
  }

  add(one: T): void {
    this.waiting.push(one)
    this.running ??= this.run().finally(() => (this.running = undefined))
  }

  /** Resolves when everything handed over is on disk. */
  async idle(): Promise<void> {
    while (this.running) await this.running
  }

  private async run(): Promise<void> {
    for (let failures = 0; this.waiting.length > 0;) {
      let batch: readonly T[] = []
      try {
        await this.parts.database.write(
          async tx => {
            batch = this.waiting.slice(0, BATCH)
            await this.record(tx, batch)
          },
          { canWait: true },
        )
        this.waiting = this.waiting.slice(batch.length)
        failures = 0
        this.onDisk(batch)
      } catch (error) {
        failures += 1
        await this.rest(error, failures)
      }
    }
  }

  private async rest(error: unknown, failures: number): Promise<void> {
    const { clock, random, log } = this.parts
    const retryInMs = retryDelayMs(RETRY, failures, random.fraction())
    log.error('webhook attempts could not be written', {
      attempts: this.waiting.length,
      error: describeError(error),
      retryInMs,
    })
    await clock.sleep(retryInMs)
  }
}
