/**
 * Collects finished attempts and records them in batches: whatever has come in when a transaction begins is written
 * in it, so that the size of a batch follows the load.
 *
 * Used by the delivery runner.
 *
 * When the database cannot write (disk full) nothing is lost: outcomes stay here and are tried again, and since each
 * keeps its place among the deliveries under way, no new ones are begun meanwhile.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { Random } from '../../world/random.js'
import type { OnAttempt } from './log-attempt.js'
import { recordOutcomes, type Finished } from './record-outcomes.js'

export interface OutcomeBatchesParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly onAttempt?: OnAttempt | undefined
}

/** A batch stays a few ms of work; what is left over goes into the next. */
const BATCH = 50
/** From so many deliveries under way on, outcomes come in so fast that a few ms gather a batch. */
const BUSY = 16
const RETRY: BackoffPolicy = { firstMs: 200, factor: 2, maxMs: 30_000 }

interface Waiting {
  readonly finished: Finished
  readonly done: (nextAttemptAt: number | undefined) => void
}

export class OutcomeBatches {
  private readonly parts: OutcomeBatchesParts
  private readonly waiting: Waiting[] = []
  private running: Promise<void> | undefined
  private isBusy = false

  constructor(parts: OutcomeBatchesParts) {
    this.parts = parts
  }

  /**
   * Resolves once the outcome is on disk, with the time at which the message falls due again if it stays queued. Never
   * rejects.
   *
   * @param underWay deliveries whose outcome is still to come
   */
  add(finished: Finished, underWay: number): Promise<number | undefined> {
    this.isBusy = underWay >= BUSY
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
      const { batch, dueAgain } = await this.write()
      for (const { finished, done } of batch) done(dueAgain.get(finished.job.messageId))
    }
  }

  private async write(): Promise<{ batch: readonly Waiting[]; dueAgain: ReadonlyMap<string, number> }> {
    const { database, clock, random, log, onAttempt } = this.parts
    for (let failures = 1; ; failures += 1) {
      let batch: readonly Waiting[] = []
      try {
        const dueAgain = await database.write(
          tx => {
            batch = this.waiting.splice(0, BATCH)
            return recordOutcomes(
              tx,
              batch.map(({ finished }) => finished),
              log,
              onAttempt,
            )
          },
          { canWait: this.isBusy },
        )
        return { batch, dueAgain }
      } catch (error) {
        this.waiting.unshift(...batch)
        const delayMs = retryDelayMs(RETRY, failures, random.fraction())
        log.error('outcomes could not be written', {
          outcomes: this.waiting.length,
          error: describeError(error),
          retryInMs: delayMs,
        })
        await clock.sleep(delayMs)
      }
    }
  }
}
