/**
 * One reader thread of `slow-reader.ts`: runs one statement at a time (`slow-reader-main.ts`).
 *
 * A statement that takes too long is abandoned: its thread ends after it and is replaced, as is a thread that exits. Rejects with
 * `unavailable` on timeout, otherwise with the statement's error.
 */
import type { QueryResult } from 'kysely'
import { AppError } from '../../core/errors.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import { namedRow } from '../sqlite/named-row.js'
import { storageRefusal } from '../sqlite/storage-fault.js'
import type { SlowAnswer, SlowQuestion, SlowReaderOptions } from './slow-reader-protocol.js'

export interface ReadingParts {
  readonly spawn: SpawnThread
  readonly log: Log
  readonly clock: Clock
}

export interface Asked extends SlowQuestion {
  readonly resolve: (result: QueryResult<unknown>) => void
  readonly reject: (error: Error) => void
}

/** Time limit of a statement, from when it begins. */
export const RUNNING_LIMIT_MS = 5_000
const HEAP_MEGABYTES = 256

const PROGRAM = new URL('./slow-reader-main.js', import.meta.url)

export class ReadingThread {
  private readonly parts: ReadingParts
  private readonly options: SlowReaderOptions
  private readonly onFree: () => void
  private thread: Thread | undefined
  private running: { readonly asked: Asked; readonly timer: Timer } | undefined
  private isClosed = false
  /** Threads still running an abandoned statement. */
  leftBehind = 0

  /** @param onFree called when it can run another statement */
  constructor(parts: ReadingParts, options: SlowReaderOptions, onFree: () => void) {
    this.parts = parts
    this.options = options
    this.onFree = onFree
  }

  get isFree(): boolean {
    return !this.running
  }

  /** Call only while it is free. */
  ask(asked: Asked): void {
    const timer = this.parts.clock.after(RUNNING_LIMIT_MS, () => this.leaveBehind())
    this.running = { asked, timer }
    this.thread ??= this.start()
    this.thread.post({ sql: asked.sql, parameters: asked.parameters } satisfies SlowQuestion)
  }

  async close(reason: Error): Promise<void> {
    this.isClosed = true
    this.end(asked => asked.reject(reason))
    await this.thread?.terminate()
  }

  /** The statement has ended, successfully or not. */
  private end(tell: (asked: Asked) => void): void {
    const { running } = this
    if (!running) return
    this.running = undefined
    running.timer.cancel()
    tell(running.asked)
    this.onFree()
  }

  private start(): Thread {
    const thread: Thread = this.parts.spawn(PROGRAM, {
      options: this.options,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => {
        if (thread === this.thread) this.end(asked => settle(asked, message as SlowAnswer))
      },
      onEnd: ({ exitCode, fault }) => {
        if (thread !== this.thread) return
        this.thread = undefined
        const error = fault?.message ?? `exit code ${exitCode}`
        if (!this.isClosed) this.parts.log.error('slow reader thread exited', { error })
        this.end(asked => asked.reject(new Error(`the thread for long reads ended: ${error}`)))
      },
    })
    return thread
  }

  private leaveBehind(): void {
    const { thread, running } = this
    this.thread = undefined
    this.leftBehind += 1
    this.parts.log.warn('slow read aborted', {
      sql: running?.asked.sql.slice(0, 500),
      limitMs: RUNNING_LIMIT_MS,
    })
    void thread?.terminate().finally(() => (this.leftBehind -= 1))
    this.end(asked => asked.reject(tooLong()))
  }
}

function settle(asked: Asked, answer: SlowAnswer): void {
  if ('error' in answer) {
    const { error, code } = answer
    asked.reject(storageRefusal(Object.assign(new Error(error), code === undefined ? {} : { code })))
    return
  }
  const { columns, rows } = answer
  asked.resolve({ rows: rows.map(values => namedRow(columns, values)) })
}

function tooLong(): AppError {
  const seconds = RUNNING_LIMIT_MS / 1_000
  return new AppError(
    'unavailable',
    `this read takes longer than ${seconds} s; ask for less, e.g. with a filter`,
    {
      retryAfterMs: 30_000,
    },
  )
}
