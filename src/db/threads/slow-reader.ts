/**
 * Reads that can take over 10 ms (counts, deep pages, search, exports), in threads: the main thread compiles the statement with Kysely, a
 * thread runs it (`reading-thread.ts`), and the event loop continues.
 *
 * Used through `Database.slowReader`. Statements are queued in order of arrival; large scans are split into several statements, which the
 * threads share. One thread is reserved for statements that did not take long the last time, so that pages and counts do not wait behind
 * heavy searches. Exports have their own queue: one of their statements runs at a time, and only when no other can. Never writes; no
 * transactions.
 *
 * Limits: queue length, wait time, run time and rows per result. SQLite statements here cannot be interrupted: one that takes too long is
 * abandoned, its thread ends after it and is replaced, up to a small number of such threads.
 * Throws `unavailable` if the queue is full or a statement takes too long, otherwise the statement's error.
 */
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult } from 'kysely'
import { AppError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import { ReadingThread, type Asked, type ReadingParts } from './reading-thread.js'

export type SlowReaderParts = Omit<ReadingParts, 'clock'>

/** Maximum statements per queue. */
export const MOST_WAITING = 100
/** Maximum time in the queue. */
export const WAITING_LIMIT_MS = 10_000
/** The same for exports, which are longer since a rejected statement breaks the download. */
const EXPORT_WAITING_LIMIT_MS = 60_000
/** Maximum rows per result. */
const MOST_ROWS = 20_000
/** Maximum number of threads still running an abandoned statement. */
const MOST_LEFT_BEHIND = 2
/** Threads: split scans finish sooner, and one long read does not block others. */
const THREADS = 2
/** Duration from which a statement counts as long. */
const LONG_MS = 100
/** Maximum number of long statements remembered. */
const MOST_REMEMBERED = 1_000

/** Purpose of a statement: a page that a request waits for, or a streamed export. */
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
  /** SQL of statements that were long when last run, in order of last use. */
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

  /** In order of arrival, exports last; long statements and exports only if a thread remains for others. */
  private takeWaiting(): Waiting | undefined {
    const mayBeLong = this.runningLong < THREADS - 1
    let at = this.waiting.findIndex(({ line, sql }) => line === 'pages' && (mayBeLong || !this.long.has(sql)))
    if (at < 0 && mayBeLong) at = this.waiting.findIndex(({ line }) => line === 'exports')
    return at < 0 ? undefined : this.waiting.splice(at, 1)[0]
  }

  /** Remembers whether the statement is long, even if it fails. */
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

/** The driver that Kysely uses. */
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
    // Closed by its owner, since several drivers share the reader.
    destroy: async () => {},
  }
}
