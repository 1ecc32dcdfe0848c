/**
 * Reads that can take over 10 ms (counts, deep pages, search, exports), in threads: the main thread compiles the statement with Kysely, a
 * thread runs it (`slow-reader-main.ts`), and the event loop continues.
 *
 * Used through `Database.slowReader`. Statements are queued in order of arrival; large scans are split into several statements, which the
 * threads share. One thread is reserved for statements that did not take long the last time, so that pages and counts do not wait behind
 * heavy searches. Exports have their own queue: one of their statements runs at a time, and only when no other can. Never writes.
 *
 * A transaction is a snapshot: it keeps a thread until it ends, one at a time, so that the other thread remains for everybody else.
 *
 * Limits: queue length, wait time, run time and rows per result. SQLite statements here cannot be interrupted: one that takes too long is
 * abandoned, its thread ends after it and is replaced, up to a small number of such threads.
 * Throws `unavailable` if the queue is full or a statement takes too long, otherwise the statement's error.
 */
import type { QueryResult } from 'kysely'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import { MAX_WAITING, RUNNING_LIMIT_MS, tooBusy, tooLong } from '../slow-read-limits.js'
import { namedRow } from './sqlite-dialect.js'
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
  /** For the first statement of a snapshot: called with its thread. */
  readonly keep?: ((thread: ReadingThread) => void) | undefined
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

  /** @param keep makes it the first statement of a snapshot; called with the thread that runs it, which then takes nothing else */
  run<Row>(
    { sql, parameters }: SlowQuestion,
    line: ReadingLine,
    keep?: (thread: ReadingThread) => void,
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
        keep,
      })
      this.next()
    })
  }

  /** Runs the next statement of a snapshot in its thread. */
  runIn<Row>(thread: ReadingThread, { sql, parameters }: SlowQuestion): Promise<QueryResult<Row>> {
    return new Promise((resolve, reject) => {
      thread.ask(this.timed({ sql, parameters, resolve: resolve as Asked['resolve'], reject }, 'pages'))
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
    else {
      asked.keep?.(free)
      free.ask(this.timed(asked, asked.line))
    }
    this.next()
  }

  /** In order of arrival, exports last; long statements, snapshots and exports only if a thread remains for others. */
  private takeWaiting(): Waiting | undefined {
    const mayBeLong = this.runningLong < THREADS - 1
    const mayKeep = !this.threads.some(({ isKept }) => isKept)
    const mayRun = (one: Waiting) => mayKeep || !one.keep
    let at = this.waiting.findIndex(
      one => one.line === 'pages' && (mayBeLong || !this.long.has(one.sql)) && mayRun(one),
    )
    if (at < 0 && mayBeLong) at = this.waiting.findIndex(one => one.line === 'exports' && mayRun(one))
    return at < 0 ? undefined : this.waiting.splice(at, 1)[0]
  }

  /** Remembers whether the statement is long, even if it fails. */
  private timed({ sql, parameters, resolve, reject }: Asked, line: ReadingLine): Asked {
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
export class ReadingThread {
  private readonly parts: SlowReaderParts
  private readonly options: SlowReaderOptions
  private readonly onFree: () => void
  private thread: Thread | undefined
  private running: { readonly asked: Asked; readonly timer: Timer } | undefined
  /** The snapshot that keeps it. */
  private keeper: object | undefined
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
    return !this.running && !this.keeper
  }

  get isKept(): boolean {
    return this.keeper !== undefined
  }

  keep(keeper: object): void {
    this.keeper = keeper
  }

  /** False once its transaction is gone with the thread. */
  isKeptBy(keeper: object): boolean {
    return this.keeper === keeper
  }

  release(): void {
    this.keeper = undefined
    this.onFree()
  }

  /** Call only while it runs nothing. */
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
        this.keeper = undefined
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
    this.keeper = undefined
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
