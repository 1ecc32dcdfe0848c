/**
 * Runs long work in a thread with its own write connection, turn by turn: its computing and disk waits only block writers.
 *
 * The program opens its database with `thread-database.ts`. The thread only exists while there is work. Rejects if the thread exits early;
 * what it committed stays.
 */
import { AppError, describeError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import { pauseFor, type Clock } from '../../world/time/clock.js'
import type { Lending, LentTurn } from '../database.js'
import type {
  WritingAnswer,
  WritingFault,
  WritingMessage,
  WritingOptions,
  WritingRefusal,
} from './writing-protocol.js'

export interface WritingParts {
  readonly spawn: SpawnThread
  readonly log: Pick<Log, 'error'>
  readonly lending: Lending
  readonly clock: Pick<Clock, 'now'>
  /** Something was committed. */
  readonly onWritten: () => void
}

const HEAP_MEGABYTES = 256
/** Young generation size: rows of a piece live until its commit, and would be promoted in a smaller one. */
const YOUNG_MEGABYTES = 48
/** Waiting writers go before consumers of what was written. */
const TOLD_AFTER_MS = 5

/** @param program main module of the thread @param stopping asks the thread to finish early, at a point of its choice */
export async function runWriting(parts: WritingParts, program: URL, stopping: AbortSignal): Promise<void> {
  const running = new RunningWriter(parts, program)
  const stop = () => running.stop()
  stopping.addEventListener('abort', stop, { once: true })
  if (stopping.aborted) stop()
  try {
    await running.ended
    await running.told()
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

class RunningWriter {
  /** Resolves once it has reported completion and exited. */
  readonly ended: Promise<void>
  private readonly parts: WritingParts
  private readonly thread: Thread
  /** See `WritingOptions.wanted`. */
  private readonly wanted = new Int32Array(new SharedArrayBuffer(4))
  private isFinished = false
  private telling: Promise<void> | undefined
  private turn: LentTurn | undefined
  /** Ends the lent turn. */
  private over: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined

  constructor(parts: WritingParts, program: URL) {
    this.parts = parts
    let onEnd: (error?: Error) => void = () => {}
    this.ended = new Promise((resolve, reject) => {
      onEnd = error => (error ? reject(error) : resolve())
    })
    this.thread = parts.spawn(program, {
      options: {
        ...{ file: parts.lending.file, now: parts.clock.now() },
        wanted: this.wanted.buffer,
      } satisfies WritingOptions,
      heapMegabytes: HEAP_MEGABYTES,
      youngMegabytes: YOUNG_MEGABYTES,
      onMessage: message => this.take(message as WritingMessage),
      onEnd: ({ exitCode, fault }) => {
        const error = new Error(`a thread that writes ended: ${fault?.message ?? `exit code ${exitCode}`}`)
        // Its connection is closed and uncommitted changes are gone.
        this.over?.reject(error)
        onEnd(this.isFinished ? undefined : error)
      },
    })
  }

  /** Resolves once all consumers have been notified of everything written. */
  async told(): Promise<void> {
    await this.telling
  }

  stop(): void {
    this.say({ kind: 'stop' })
  }

  private take(message: WritingMessage): void {
    if (message.kind === 'turn') void this.leaveTurn()
    else if (message.kind === 'committed') this.goOn(message.durationsMs)
    else if (message.kind === 'over') this.endTurn(message.durationsMs, message.fault)
    else if (message.kind === 'trouble') this.parts.log.error(message.event, message.fields)
    else {
      this.isFinished = true
      void this.thread.terminate()
    }
  }

  private async leaveTurn(): Promise<void> {
    let refusal: WritingRefusal | undefined
    try {
      await this.parts.lending.lend(turn => {
        Atomics.store(this.wanted, 0, 0)
        turn.onWanted(() => Atomics.store(this.wanted, 0, 1))
        this.turn = turn
        const over = new Promise<void>((resolve, reject) => (this.over = { resolve, reject }))
        this.say({ kind: 'turn' })
        return over.finally(() => (this.over = this.turn = undefined))
      })
    } catch (error) {
      refusal = { message: describeError(error), ...given({ retryAfterMs: retryAfterOf(error) }) }
    }
    this.say({ kind: 'settled', ...(refusal === undefined ? {} : { refusal }) })
    this.tellSoon()
  }

  private tellSoon(): void {
    this.telling ??= pauseFor(TOLD_AFTER_MS).then(() => {
      this.telling = undefined
      this.parts.onWritten()
    })
  }

  private goOn(durationsMs: readonly number[]): void {
    this.turn?.committed(durationsMs)
    this.tellSoon()
  }

  private endTurn(durationsMs: readonly number[], fault: WritingFault | undefined): void {
    this.turn?.committed(durationsMs)
    if (fault) this.over?.reject(Object.assign(new Error(fault.message), { code: fault.code }))
    else this.over?.resolve()
  }

  private say(answer: WritingAnswer): void {
    this.thread.post(answer)
  }
}

function retryAfterOf(error: unknown): number | undefined {
  return error instanceof AppError ? error.retryAfterMs : undefined
}
