/**
 * Work that is woken, takes turns until there is nothing left to do, and after a failure rests, ever longer, before it tries again.
 *
 * Used by whoever works off what stands in the database. A wake that comes while it runs is not lost; one that comes while it
 * rests is kept until the rest is over, since whatever failed would fail again. Fails: never; a failed turn is told to its owner.
 */
import type { Clock, Timer } from './clock.js'

export interface RetryingLoopParts {
  readonly clock: Clock
  /** Length of a rest, ms. @param failures in a row, >= 1 */
  readonly restMs: (failures: number) => number
  /** One batch. @returns whether there may be more */
  readonly takeTurn: () => Promise<boolean>
  /** Waited for after each turn, so that others have theirs. */
  readonly afterTurn: () => Promise<void>
  readonly onFailure: (error: unknown, retryInMs: number) => void
}

export class RetryingLoop {
  private readonly parts: RetryingLoopParts
  private running: Promise<void> | undefined
  private isWoken = false
  private stopped = false
  /** In a row. */
  private failures = 0
  private rest: Timer | undefined

  constructor(parts: RetryingLoopParts) {
    this.parts = parts
  }

  get isStopped(): boolean {
    return this.stopped
  }

  /** There may be something to do. Cheap. */
  wake(): void {
    this.isWoken = true
    if (this.stopped || this.running || this.rest) return
    this.running = this.run().finally(() => {
      this.running = undefined
      // For a wake that came after the last look but before the end of the run.
      if (this.isWoken) this.wake()
    })
  }

  /** Something was done: the next failure is the first again. A turn that found nothing proves nothing. */
  succeed(): void {
    this.failures = 0
  }

  /** No turn begins any more. */
  halt(): void {
    this.stopped = true
    this.rest?.cancel()
  }

  /** Halts, and waits for the turn in hand. */
  async stop(): Promise<void> {
    this.halt()
    await this.running
  }

  private async run(): Promise<void> {
    try {
      let mayHaveMore = true
      while (mayHaveMore && !this.stopped) {
        this.isWoken = false
        mayHaveMore = await this.parts.takeTurn()
        await this.parts.afterTurn()
      }
    } catch (error) {
      this.restAfter(error)
    }
  }

  private restAfter(error: unknown): void {
    const { clock, restMs, onFailure } = this.parts
    this.failures += 1
    const retryInMs = restMs(this.failures)
    onFailure(error, retryInMs)
    this.rest = clock.after(retryInMs, () => {
      this.rest = undefined
      this.wake()
    })
  }
}
