/**
 * A worker loop: runs batches when woken until there is nothing left, and backs off after failures.
 *
 * A wake during a batch is not lost; a wake during back-off takes effect when it ends. Never rejects; failures go to `onFailure`.
 */
import type { Clock, Timer } from './clock.js'

export interface RetryingLoopParts {
  readonly clock: Clock
  /** @param failures consecutive failures, >= 1 */
  readonly backoffMs: (failures: number) => number
  /** @returns whether there may be more */
  readonly runBatch: () => Promise<boolean>
  /** Awaited after each batch, so that other work runs in between. */
  readonly afterBatch: () => Promise<void>
  readonly onFailure: (error: unknown, retryInMs: number) => void
}

export class RetryingLoop {
  private readonly parts: RetryingLoopParts
  private running: Promise<void> | undefined
  private isWoken = false
  private stopped = false
  private failures = 0
  private backoff: Timer | undefined

  constructor(parts: RetryingLoopParts) {
    this.parts = parts
  }

  get isStopped(): boolean {
    return this.stopped
  }

  /** Cheap; call it whenever there may be work. */
  wake(): void {
    this.isWoken = true
    if (this.stopped || this.running || this.backoff) return
    this.running = this.run().finally(() => {
      this.running = undefined
      // A wake between the last batch and the end of the run.
      if (this.isWoken) this.wake()
    })
  }

  /** Resets the back-off. Call it when a batch did work; an empty batch proves nothing. */
  resetBackoff(): void {
    this.failures = 0
  }

  halt(): void {
    this.stopped = true
    this.backoff?.cancel()
  }

  async stop(): Promise<void> {
    this.halt()
    await this.running
  }

  private async run(): Promise<void> {
    try {
      let mayHaveMore = true
      while (mayHaveMore && !this.stopped) {
        this.isWoken = false
        mayHaveMore = await this.parts.runBatch()
        await this.parts.afterBatch()
      }
    } catch (error) {
      this.backOff(error)
    }
  }

  private backOff(error: unknown): void {
    const { clock, backoffMs, onFailure } = this.parts
    this.failures += 1
    const retryInMs = backoffMs(this.failures)
    onFailure(error, retryInMs)
    this.backoff = clock.after(retryInMs, () => {
      this.backoff = undefined
      this.wake()
    })
  }
}
