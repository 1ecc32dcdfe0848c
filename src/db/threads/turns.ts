/**
 * Write turns of a thread: requested from the server, and kept across transactions until someone else wants to write.
 *
 * Used by `thread-database.ts`; the server's side is `writing-thread.ts`. Each request and release costs the server time, so a turn spans
 * many transactions; between two of them the thread checks whether to end it. Rejects with `unavailable` if the server does not allow
 * writes now.
 */
import { AppError, describeError } from '../../core/errors.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { sqliteCode, storageRefusal } from '../sqlite/storage-fault.js'
import type { WritingAnswer, WritingFault, WritingMessage, WritingRefusal } from './writing-protocol.js'

/** Interval of commit reports to the server, which then checks disk and log and notifies consumers. */
const TOLD_EVERY_MS = 50

export interface TurnParts {
  readonly say: (message: WritingMessage) => void
  readonly clock: Pick<Clock, 'monotonic'>
  /** See `WritingOptions`. */
  readonly wanted: SharedArrayBuffer
}

/** @param callbacks where to add functions called once the commit is acknowledged */
export type Transact<T> = (callbacks: (() => void)[]) => Promise<T>

export class Turns {
  private readonly parts: TurnParts
  private readonly wanted: Int32Array
  private last: Promise<unknown> = Promise.resolve()
  private isHad = false
  /** Time of the last report to the server. */
  private toldAt = 0
  /** Durations of transactions not yet reported, ms. */
  private durations: number[] = []
  /** Number of transactions begun. */
  private begun = 0
  private settled: Promise<WritingRefusal | undefined> = Promise.resolve(undefined)
  private onTurn: () => void = () => {}
  private onSettled: (refusal: WritingRefusal | undefined) => void = () => {}

  constructor(parts: TurnParts) {
    this.parts = parts
    this.wanted = new Int32Array(parts.wanted)
  }

  answered(answer: Exclude<WritingAnswer, { kind: 'stop' }>): void {
    if (answer.kind === 'turn') this.onTurn()
    else this.onSettled(answer.refusal)
  }

  /** Runs transactions one after the other. */
  take<T>(transact: Transact<T>): Promise<T> {
    return this.inOrder(() => this.run(transact))
  }

  /** Releases the turn, if held. A refusal also fails the next turn, and is reported there. */
  end(): Promise<void> {
    return this.inOrder(() => this.giveBack()).catch(() => undefined)
  }

  private inOrder<T>(step: () => Promise<T>): Promise<T> {
    const done = this.last.then(step)
    this.last = done.catch(() => undefined)
    return done
  }

  private async run<T>(transact: Transact<T>): Promise<T> {
    this.begun += 1
    if (this.isHad) await this.goOn()
    if (!this.isHad) await this.ask()
    const callbacks: (() => void)[] = []
    try {
      const begunAt = this.parts.clock.monotonic()
      const result = await transact(callbacks)
      this.durations.push(this.parts.clock.monotonic() - begunAt)
      void this.giveBackWhenIdle(this.begun)
      for (const callback of callbacks) callback()
      return result
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      // This error takes precedence over errors that follow from it.
      await this.giveBack(faultOf(error)).catch(() => undefined)
      throw storageRefusal(error)
    }
  }

  /** In the turn of the previous transaction, if allowed. */
  private async goOn(): Promise<void> {
    // Lets messages be received, such as a stop.
    await nextTurn()
    const { say, clock } = this.parts
    const isToEnd = Atomics.load(this.wanted, 0) === 1
    if (isToEnd) return this.giveBack()
    const now = clock.monotonic()
    if (now - this.toldAt < TOLD_EVERY_MS) return
    say({ kind: 'committed', durationsMs: this.takeDurations() })
    this.toldAt = now
  }

  private async ask(): Promise<void> {
    const { say, clock } = this.parts
    const given = new Promise<boolean>(resolve => (this.onTurn = () => resolve(true)))
    this.settled = new Promise(resolve => (this.onSettled = resolve))
    say({ kind: 'turn' })
    // If nothing can be stored, the turn is refused before it is granted.
    if (!(await Promise.race([given, this.settled.then(() => false)]))) throw unavailable(await this.settled)
    this.isHad = true
    this.toldAt = clock.monotonic()
  }

  /** @throws AppError if the commits were not acknowledged */
  private async giveBack(fault: { readonly fault?: WritingFault } = {}): Promise<void> {
    if (!this.isHad) return
    this.isHad = false
    this.parts.say({ kind: 'over', durationsMs: this.takeDurations(), ...fault })
    const refusal = await this.settled
    if (refusal) throw unavailable(refusal)
  }

  private takeDurations(): readonly number[] {
    const { durations } = this
    this.durations = []
    return durations
  }

  /** An idle thread must not block others. @param begun transactions begun when it was scheduled */
  private async giveBackWhenIdle(begun: number): Promise<void> {
    await nextTurn()
    if (begun === this.begun) await this.end()
  }
}

function unavailable({ message, retryAfterMs }: WritingRefusal = { message: '' }): AppError {
  return new AppError('unavailable', message, { ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
}

/** Faults of the storage; errors of the work itself are not reported. */
function faultOf(error: Error): { readonly fault?: WritingFault } {
  const code = sqliteCode(error)
  return code === undefined ? {} : { fault: { message: describeError(error), code } }
}
