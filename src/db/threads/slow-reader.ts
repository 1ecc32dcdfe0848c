/**
 * Reads that can take over 10 ms (counts, deep pages, search, exports), in threads of their own: the main thread prints the
 * statement with Kysely, a thread runs it (`reading-thread.ts`), and everybody else goes on meanwhile.
 *
 * Called by Kysely: `Database.slowReader`, for the stores of lists. Statements take turns in the order they came, and whoever
 * needs several stands in line anew for each; one that looks at very much is asked in pieces, which the threads share. What took long
 * when it was last asked has all threads but one: that one is for pages and counts, which would wait for seconds behind somebody's
 * conditions. Exports have a separate queue: one of their statements runs at a time, and only while nothing else could. Never writes, and knows no transactions.
 *
 * Bounds: how many wait, for how long, how long one runs, and how many rows it gives. A statement cannot be broken off inside
 * of SQLite: one that takes too long is left to its thread, which ends after it, and another thread is started; there are never
 * more than a few of them.
 * Fails: by `unavailable` where too many wait or one takes too long; otherwise as the statement does.
 */
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { AppError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import { ReadingThread, type Asked, type ReadingParts } from './reading-thread.js'

export type SlowReaderParts = Omit<ReadingParts, 'clock'>

/** Statements in each line. */
export const MOST_WAITING = 100
/** In line. */
export const WAITING_LIMIT_MS = 10_000
/** The same for exports: one that is refused in its middle is lost. */
const EXPORT_WAITING_LIMIT_MS = 60_000
/** Rows of one answer. */
const MOST_ROWS = 20_000
/** Threads that still run what nobody waits for any more. */
const MOST_LEFT_BEHIND = 2
/** Statements that run at the same time: what is asked in pieces is done sooner, and one long read holds up no other. */
const THREADS = 2
/** From which on a statement is one of the long ones. */
const LONG_MS = 100
/** Texts of statements that are remembered as long. */
const MOST_REMEMBERED = 1_000

/** What a statement is for: a page that a request waits for, or a streamed file. */
export type ReadingLine = 'pages' | 'exports'

interface Waiting extends Asked {
  readonly line: ReadingLine
  /** On the monotonic clock. */
  readonly since: number
}

export class SlowReader {
  private readonly clock: Clock
  private readonly waiting: Waiting[] = []
  private readonly threads: readonly ReadingThread[]
  /** Texts of statements that took long when they last ran; those that ran last, last. */
  private readonly long = new Set<string>()
  private runningLong = 0
  private isClosed = false

  constructor(parts: SlowReaderParts, clock: Clock, file: string) {
    this.clock = clock
    const options = { file, mostRows: MOST_ROWS }
    this.threads = Array.from(
      { length: THREADS },
      () => new ReadingThread({ ...parts, clock }, options, () => this.next()),
    )
  }

  run<Row>(
    { sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>,
    line: ReadingLine,
  ): Promise<QueryResult<Row>> {
    return new Promise((resolve, reject) => {
      if (this.isClosed) throw new Error('the database is closed')
      if (this.waiting.filter(other => other.line === line).length >= MOST_WAITING) throw tooBusy()
      this.waiting.push({
        line,
        sql,
        parameters,
        since: this.clock.monotonic(),
        resolve: resolve as Waiting['resolve'],
        reject,
      })
      this.next()
    })
  }

  async close(): Promise<void> {
    this.isClosed = true
    const closed = new Error('the database is closed')
    for (const asked of this.waiting.splice(0)) asked.reject(closed)
    await Promise.all(this.threads.map(thread => thread.close(closed)))
  }

  private next(): void {
    const free = this.threads.find(({ isFree }) => isFree)
    if (!free) return
    const asked = this.takeWaiting()
    if (!asked) return
    const limitMs = asked.line === 'exports' ? EXPORT_WAITING_LIMIT_MS : WAITING_LIMIT_MS
    const leftBehind = this.threads.reduce((sum, thread) => sum + thread.leftBehind, 0)
    if (this.clock.monotonic() - asked.since > limitMs || leftBehind > MOST_LEFT_BEHIND)
      asked.reject(tooBusy())
    else free.ask(this.timed(asked))
    this.next()
  }

  /** Who came first, exports last; a long statement, or one of an export, only where a thread is left to others. */
  private takeWaiting(): Waiting | undefined {
    const mayBeLong = this.runningLong < THREADS - 1
    let at = this.waiting.findIndex(({ line, sql }) => line === 'pages' && (mayBeLong || !this.long.has(sql)))
    if (at < 0 && mayBeLong) at = this.waiting.findIndex(({ line }) => line === 'exports')
    return at < 0 ? undefined : this.waiting.splice(at, 1)[0]
  }

  /** Remembers how long it takes, whichever way it ends. */
  private timed({ sql, parameters, line, resolve, reject }: Waiting): Asked {
    const begunAt = this.clock.monotonic()
    const isLong = line === 'exports' || this.long.has(sql)
    if (isLong) this.runningLong += 1
    const ended = () => {
      if (isLong) this.runningLong -= 1
      this.long.delete(sql)
      if (this.clock.monotonic() - begunAt >= LONG_MS) this.remember(sql)
    }
    return {
      ...{ sql, parameters },
      resolve: result => {
        ended()
        resolve(result)
      },
      reject: error => {
        ended()
        reject(error)
      },
    }
  }

  private remember(sql: string): void {
    this.long.add(sql)
    const [oldest] = this.long
    if (this.long.size > MOST_REMEMBERED && oldest !== undefined) this.long.delete(oldest)
  }
}

function tooBusy(): AppError {
  return new AppError('unavailable', 'too many long reads at the moment; try again in a few seconds', {
    retryAfterMs: 5_000,
  })
}

/** What Kysely runs its statements on. */
export function slowReadingDriver(reader: SlowReader, line: ReadingLine): Driver {
  const noTransactions = () => Promise.reject(new Error('long reads know no transactions'))
  const connection: DatabaseConnection = {
    executeQuery: query => reader.run(query, line),
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
    // Closed by whoever opened the reader, which has more drivers than one.
    destroy: async () => {},
  }
}
