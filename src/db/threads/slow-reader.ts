/**
 * Reads that can take over 10 ms (counts, deep pages, search, exports), in a thread of their own: the main thread prints the
 * statement with Kysely, the thread runs it (`slow-reader-main.ts`), and everybody else goes on meanwhile.
 *
 * Called by Kysely: `Database.slowReader`, for the stores of lists. Statements take turns in the order they came, and whoever
 * needs several stands in line anew for each. Never writes, and knows no transactions.
 *
 * Bounds: how many wait, for how long, how long one runs, and how many rows it gives. A statement cannot be broken off inside
 * of SQLite: one that takes too long is left to its thread, which ends after it, and another thread is started; there are never
 * more than a few of them.
 * Fails: by `unavailable` where too many wait or one takes too long; otherwise as the statement does.
 */
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { AppError } from '../../core/errors.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import type { SlowAnswer, SlowQuestion, SlowReaderOptions } from './slow-reader-protocol.js'
import { storageRefusal } from '../sqlite/storage-fault.js'

export interface SlowReaderParts {
  readonly spawn: SpawnThread
  readonly log: Log
}

/** Statements in line. */
export const MOST_WAITING = 100
/** For one statement, from when it begins. */
export const RUNNING_LIMIT_MS = 5_000
/** In line. */
export const WAITING_LIMIT_MS = 10_000
/** Rows of one answer. */
const MOST_ROWS = 20_000
/** Threads that still run what nobody waits for any more. */
const MOST_LEFT_BEHIND = 2
const HEAP_MEGABYTES = 256

const PROGRAM = new URL('./slow-reader-main.js', import.meta.url)

interface Asked extends SlowQuestion {
  /** On the monotonic clock. */
  readonly since: number
  readonly resolve: (result: QueryResult<unknown>) => void
  readonly reject: (error: Error) => void
}

export class SlowReader {
  private readonly parts: SlowReaderParts
  private readonly clock: Clock
  private readonly options: SlowReaderOptions
  private readonly waiting: Asked[] = []
  private running: { readonly asked: Asked; readonly timer: Timer } | undefined
  private thread: Thread | undefined
  private leftBehind = 0
  private isClosed = false

  constructor(parts: SlowReaderParts, clock: Clock, file: string) {
    this.parts = parts
    this.clock = clock
    this.options = { file, mostRows: MOST_ROWS }
  }

  run<Row>({ sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>): Promise<QueryResult<Row>> {
    return new Promise((resolve, reject) => {
      if (this.isClosed) throw new Error('the database is closed')
      if (this.waiting.length >= MOST_WAITING) throw tooBusy()
      this.waiting.push({
        sql,
        parameters,
        since: this.clock.monotonic(),
        resolve: resolve as Asked['resolve'],
        reject,
      })
      this.next()
    })
  }

  async close(): Promise<void> {
    this.isClosed = true
    const closed = new Error('the database is closed')
    this.end(asked => asked.reject(closed))
    for (const asked of this.waiting.splice(0)) asked.reject(closed)
    await this.thread?.terminate()
  }

  private next(): void {
    if (this.running) return
    const asked = this.waiting.shift()
    if (!asked) return
    if (this.clock.monotonic() - asked.since > WAITING_LIMIT_MS || this.leftBehind > MOST_LEFT_BEHIND) {
      asked.reject(tooBusy())
      this.next()
      return
    }
    this.running = { asked, timer: this.clock.after(RUNNING_LIMIT_MS, () => this.leaveBehind()) }
    this.thread ??= this.start()
    this.thread.post({ sql: asked.sql, parameters: asked.parameters } satisfies SlowQuestion)
  }

  /** What runs is over, one way or the other. */
  private end(tell: (asked: Asked) => void): void {
    const { running } = this
    if (!running) return
    this.running = undefined
    running.timer.cancel()
    tell(running.asked)
    this.next()
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
        if (!this.isClosed) this.parts.log.error('the thread for long reads ended', { error })
        this.end(asked => asked.reject(new Error(`the thread for long reads ended: ${error}`)))
      },
    })
    return thread
  }

  private leaveBehind(): void {
    const { thread, running } = this
    this.thread = undefined
    this.leftBehind += 1
    this.parts.log.warn('a read took too long', {
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
  asked.resolve({
    rows: rows.map(values => Object.fromEntries(columns.map((name, at) => [name, values[at]]))),
  })
}

function tooBusy(): AppError {
  return new AppError('unavailable', 'too many long reads at the moment; try again in a few seconds', {
    retryAfterMs: 5_000,
  })
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

/** What Kysely runs its statements on. */
export function slowReadingDriver(reader: SlowReader): Driver {
  const noTransactions = () => Promise.reject(new Error('long reads know no transactions'))
  const connection: DatabaseConnection = {
    executeQuery: query => reader.run(query),
    streamQuery: () => {
      throw new Error('long reads are not streamed')
    },
  }
  return {
    init: async () => {},
    acquireConnection: () => Promise.resolve(connection),
    beginTransaction: noTransactions,
    commitTransaction: noTransactions,
    rollbackTransaction: noTransactions,
    releaseConnection: async () => {},
    destroy: () => reader.close(),
  }
}
