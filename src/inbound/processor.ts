/**
 * Has the mail that was stored read and take effect, in two loops that do not wait for each other: `processing-loop.ts`.
 *
 * Woken by the receiver's commits, and every few seconds for what a command has marked for reading anew. Each loop has its own
 * thread from the first mail on, so that one is never busy with what has no token of ours. Fails: never; see there.
 */
import type { Timer } from '../world/time/clock.js'
import type { SpawnThread } from '../world/threads.js'
import { ParserThread } from './reading/parser-thread.js'
import { ProcessingLoop, type ProcessingParts } from './processing-loop.js'
import type { InboundCounters } from './results.js'

export interface ProcessorParts extends ProcessingParts {
  readonly spawn: SpawnThread
}

const LOOK_EVERY_MS = 5_000

export class InboundProcessor {
  private readonly parts: ProcessorParts
  private readonly signed: ProcessingLoop
  private readonly unsigned: ProcessingLoop
  private lookTimer: Timer | undefined

  constructor(parts: ProcessorParts) {
    this.parts = parts
    this.signed = new ProcessingLoop(parts, true, new ParserThread(parts))
    this.unsigned = new ProcessingLoop(parts, false, new ParserThread(parts))
  }

  get counters(): InboundCounters {
    return this.parts.counters
  }

  /** Takes up what was stored and not processed before. */
  start(): void {
    this.lookAgain()
  }

  /** @param isSigned of the mail that was stored: whether each recipient is a signed address */
  wake(isSigned: boolean): void {
    if (isSigned) this.signed.wake()
    else this.unsigned.wake()
  }

  wakeAll(): void {
    this.wake(true)
    this.wake(false)
  }

  /** Finishes the batches in hand; what waits is taken up at the next start. */
  async stop(): Promise<void> {
    this.lookTimer?.cancel()
    await Promise.all([this.signed.stop(), this.unsigned.stop()])
  }

  private lookAgain(): void {
    this.wakeAll()
    this.lookTimer = this.parts.clock.after(LOOK_EVERY_MS, () => this.lookAgain())
  }
}
