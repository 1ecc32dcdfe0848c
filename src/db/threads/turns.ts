/**
 * A thread's turns at writing: asked of the server, and kept from one transaction to the next for as long as nobody else wants to write.
 *
 * Used by `thread-database.ts`; `writing-thread.ts` answers. The server is asked for each turn and told of its end, which takes it
 * a moment each time, longer where it is busy: so one turn is for many transactions. Whether it is to end is looked at between two.
 * Fails: rejects with `unavailable` where the server lets nobody write at the moment.
 */
import { AppError, describeError } from '../../core/errors.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { sqliteCode, storageRefusal } from '../sqlite/storage-fault.js'
import type { WritingAnswer, WritingFault, WritingMessage, WritingRefusal } from './writing-protocol.js'

/** From one time to the next that the server is told of commits: it then looks at disk and log, and tells others of what was written. */
const TOLD_EVERY_MS = 50

export interface TurnParts {
  readonly say: (message: WritingMessage) => void
  readonly clock: Pick<Clock, 'monotonic'>
  /** See `WritingOptions`. */
  readonly wanted: SharedArrayBuffer
}

/** @param callbacks where to put what is called once the commit counts */
export type Transact<T> = (callbacks: (() => void)[]) => Promise<T>

export class Turns {
  private readonly parts: TurnParts
  private readonly wanted: Int32Array
  private last: Promise<unknown> = Promise.resolve()
  private isHad = false
  /** When the server heard of the turn last. */
  private toldAt = 0
  /** Of the transactions that the server was not told of yet, ms. */
  private durations: number[] = []
  /** Transactions that were begun so far. */
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

  /** Runs one transaction after the other. */
  take<T>(transact: Transact<T>): Promise<T> {
    return this.inOrder(() => this.run(transact))
  }

  /** Gives the turn back, where one is had. A refusal stands in the way of the next turn as well, and is told there. */
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
      // What went wrong here is worth more than what followed from it.
      await this.giveBack(faultOf(error)).catch(() => undefined)
      throw storageRefusal(error)
    }
  }

  /** With the turn of the transaction before, if that may be. */
  private async goOn(): Promise<void> {
    // So that messages are heard, a stop among them.
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
    // Where nothing can be stored at the moment the turn is refused before it is given.
    if (!(await Promise.race([given, this.settled.then(() => false)]))) throw unavailable(await this.settled)
    this.isHad = true
    this.toldAt = clock.monotonic()
  }

  /** @throws AppError where what was committed does not count */
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

  /** Who has nothing to write for the moment keeps nobody waiting. @param begun transactions that were when it was asked */
  private async giveBackWhenIdle(begun: number): Promise<void> {
    await nextTurn()
    if (begun === this.begun) await this.end()
  }
}

function unavailable({ message, retryAfterMs }: WritingRefusal = { message: '' }): AppError {
  return new AppError('unavailable', message, { ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
}

/** Of the storage; what the work itself threw is nobody else's business. */
function faultOf(error: Error): { readonly fault?: WritingFault } {
  const code = sqliteCode(error)
  return code === undefined ? {} : { fault: { message: describeError(error), code } }
}
