/**
 * Collects finished attempts and settles them in batches: while one commit is under way the next batch gathers, so
 * that its size follows the load and nobody waits for a timer.
 *
 * When the database cannot write (disk full) nothing is lost: outcomes stay here and are tried again, and since each
 * keeps its place among the deliveries under way, no new ones are begun meanwhile.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import type { Clock } from '../world/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import { settle, type Finished } from './settle.js'

export interface SettlerParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** A batch stays a few ms of work; what is left over goes into the next. */
const BATCH = 100
const RETRY: BackoffPolicy = { firstMs: 200, factor: 2, maxMs: 30_000 }

export class Settler {
  private readonly parts: SettlerParts
  private readonly waiting: { finished: Finished; done: (nextAttemptAt: number | undefined) => void }[] = []
  private running: Promise<void> | undefined

  constructor(parts: SettlerParts) {
    this.parts = parts
  }

  /**
   * Resolves once the outcome is on disk, with the time at which the message falls due again if it stays queued. Never
   * rejects.
   */
  add(finished: Finished): Promise<number | undefined> {
    return new Promise(resolve => {
      this.waiting.push({ finished, done: resolve })
      this.running ??= this.run().finally(() => (this.running = undefined))
    })
  }

  /** Resolves when everything handed over is on disk. */
  async idle(): Promise<void> {
    while (this.running) await this.running
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, BATCH)
      const dueAgain = await this.write(batch.map(one => one.finished))
      for (const { finished, done } of batch) done(dueAgain.get(finished.job.messageId))
    }
  }

  private async write(batch: readonly Finished[]): Promise<ReadonlyMap<string, number>> {
    const { database, clock, random, log } = this.parts
    for (let failures = 1; ; failures += 1)
      try {
        return await database.write(tx => settle(tx, batch))
      } catch (error) {
        const delayMs = retryDelayMs(RETRY, failures, random.fraction())
        log.error('outcomes could not be written', {
          outcomes: batch.length,
          error: describeError(error),
          retryInMs: delayMs,
        })
        await clock.sleep(delayMs)
      }
  }
}
