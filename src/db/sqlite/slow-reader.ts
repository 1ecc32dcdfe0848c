/**
 * Reads that can take over 10 ms (counts, deep pages, search, exports), in threads: the main thread compiles the statement with Kysely, a
 * thread runs it (`slow-reader-main.ts`), and the event loop continues.
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
import {
  SqliteIntrospector,
  SqliteQueryCompiler,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import { MAX_WAITING, RUNNING_LIMIT_MS, tooBusy, tooLong } from '../slow-read-limits.js'
import { namedRow, OwnAdapter } from './sqlite-dialect.js'
import { storageRefusal } from './storage-fault.js'

export interface SlowReaderParts {
  readonly spawn: SpawnThread
  readonly log: Log
  /** Of the limits. */
  readonly clock: Clock
}

/** Maximum time in the queue. */
export const WAITING_LIMIT_MS = 10_000
/** The same for exports, which are longer since a rejected statement breaks the download. */
const EXPORT_WAITING_LIMIT_MS = 60_000
/** Maximum rows per result. */
const MAX_ROWS = 20_000
/** Maximum number of threads still running an abandoned statement. */
const MAX_ABANDONED = 2
/** Threads: split scans finish sooner, and one long read does not block others. */
const THREADS = 2
/** Duration from which a statement counts as long. */
const LONG_MS = 100
const HEAP_MEGABYTES = 256
const PROGRAM = new URL('./slow-reader-main.js', import.meta.url)
/** Maximum number of long statements remembered. */
const MAX_LONG_KEPT = 1_000

// Messages between the server and a thread: one answer per question.

export interface SlowReaderOptions {
  /** Path of the database file. */
  readonly file: string
  /** Maximum rows per result. */
  readonly maxRows: number
}

export interface SlowQuestion {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

export type SlowAnswer =
  | { readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] }
  /** `code` is SQLite's, if SQLite threw. */
  | { readonly error: string; readonly code?: string }

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

  constructor(parts: SlowReaderParts, file: string) {
    this.clock = parts.clock
    const options = { file, maxRows: MAX_ROWS }
    this.threads = Array.from({ length: THREADS }, () => new ReadingThread(parts, options, () => this.next()))
  }

  run<Row>(
    { sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>,
    line: ReadingLine,
  ): Promise<QueryResult<Row>> {
    return new Promise((resolve, reject) => {
      if (this.isClosed) throw new Error('the database is closed')
      if (this.waiting.filter(other => other.line === line).length >= MAX_WAITING) throw tooBusy()
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
    const abandoned = this.threads.reduce((sum, thread) => sum + thread.abandoned, 0)
    if (this.clock.monotonic() - asked.since > limitMs || abandoned > MAX_ABANDONED) asked.reject(tooBusy())
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
      sql,
      parameters,
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
    if (this.long.size > MAX_LONG_KEPT && oldest !== undefined) this.long.delete(oldest)
  }
}

interface Asked extends SlowQuestion {
  readonly resolve: (result: QueryResult<unknown>) => void
  readonly reject: (error: Error) => void
}

/**
 * One thread, which runs one statement at a time. A statement that takes too long is abandoned: its thread ends after it and is replaced,
 * as is a thread that exits.
 */
class ReadingThread {
  private readonly parts: SlowReaderParts
  private readonly options: SlowReaderOptions
  private readonly onFree: () => void
  private thread: Thread | undefined
  private running: { readonly asked: Asked; readonly timer: Timer } | undefined
  private isClosed = false
  /** Threads still running an abandoned statement. */
  abandoned = 0

  /** @param onFree called when it can run another statement */
  constructor(parts: SlowReaderParts, options: SlowReaderOptions, onFree: () => void) {
    this.parts = parts
    this.options = options
    this.onFree = onFree
  }

  get isFree(): boolean {
    return !this.running
  }

  /** Call only while it is free. */
  ask(asked: Asked): void {
    const timer = this.parts.clock.after(RUNNING_LIMIT_MS, () => this.abandon())
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
        this.end(asked => asked.reject(new Error(`the slow reader thread exited: ${error}`)))
      },
    })
    return thread
  }

  private abandon(): void {
    const { thread, running } = this
    this.thread = undefined
    this.abandoned += 1
    this.parts.log.warn('slow read aborted', {
      sql: running?.asked.sql.slice(0, 500),
      limitMs: RUNNING_LIMIT_MS,
    })
    void thread?.terminate().finally(() => (this.abandoned -= 1))
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

/** For reads in threads, which use no handle here. */
export function slowReadingDialect(reader: SlowReader, line: ReadingLine): Dialect {
  return {
    createAdapter: () => new OwnAdapter(),
    createDriver: () => slowReadingDriver(reader, line),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

function slowReadingDriver(reader: SlowReader, line: ReadingLine): Driver {
  const noTransactions = () => Promise.reject(new Error('slow reads have no transactions'))
  const connection: DatabaseConnection = {
    executeQuery: query => reader.run(query, line),
    streamQuery: () => {
      throw new Error('slow reads are not streamed')
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
