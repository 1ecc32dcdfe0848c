/**
 * Reads that can take over 10 ms (counts, deep pages, search, exports), in threads: the main thread compiles the statement with Kysely, a
 * thread runs it (`slow-reader-main.ts`), and the event loop continues.
 *
 * Used through `Database.slowReader`. Workspaces take turns, and so do the keys of each; one workspace has two of the threads, the others
 * remain for others. Large scans are split into several statements, which the two share. Of a workspace's statements that took long
 * the last time one runs at a time, so that its pages and counts do not wait behind its heavy searches. Exports have their own queue: one of
 * their statements runs at a time, and only when no other can. Never writes.
 *
 * A transaction is a snapshot: it keeps a thread until it ends, one of a workspace at a time, and two in all.
 *
 * Limits: queue length, wait time, run time and rows per result. SQLite statements here cannot be interrupted: one that takes too long is
 * abandoned, its thread ends after it and is replaced, up to a small number of such threads.
 * Throws `unavailable` if the queue is full or a statement takes too long, otherwise the statement's error.
 */
import type { QueryResult } from 'kysely'
import { FairShares, FairTurns } from '../../core/fair-shares.js'
import { currentHolder, type Holder } from '../../core/holder.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { Thread } from '../../world/threads.js'
import type { Services } from '../services.js'
import { MAX_WAITING, RUNNING_LIMIT_MS, tooBusy, tooLong } from '../slow-read-limits.js'
import { namedRow } from './sqlite-dialect.js'
import { storageRefusal } from '../faults/storage-fault.js'

export interface SlowReaderParts extends Pick<Services, 'log' | 'spawn'> {
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
/** Half of them for a workspace that is alone: split scans finish sooner, and one long read does not block others. */
const THREADS = 4
/** Threads kept by snapshots; their requests may need another one meanwhile. */
const MAX_KEPT = 2
/** Duration from which a statement counts as long. */
const LONG_MS = 100
const HEAP_MEGABYTES = 256
const PROGRAM = new URL('./slow-reader-main.js', import.meta.url)
/** Maximum number of statements whose duration is remembered. */
const MAX_REMEMBERED = 1_000

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
  readonly holder: Holder
  /** On the monotonic clock. */
  readonly since: number
  /** For the first statement of a snapshot: called with its thread. */
  readonly keep?: ((thread: ReadingThread) => void) | undefined
}

export class SlowReader {
  private readonly clock: Clock
  private readonly waiting: Readonly<Record<ReadingLine, FairTurns<Waiting>>> = {
    pages: new FairTurns(MAX_WAITING),
    exports: new FairTurns(MAX_WAITING),
  }
  private readonly threads: readonly ReadingThread[]
  /** Whether a statement was long when its workspace last ran it, by `durationKey`, in order of last use. */
  private readonly wasLong = new Map<string, boolean>()
  private readonly running = new FairShares(THREADS)
  private readonly runningLong = new FairShares(THREADS, { perOwner: 1 })
  private runningExports = 0
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
      const holder = currentHolder()
      const shortage = this.waiting[line].add(holder, {
        line,
        holder,
        sql,
        parameters,
        reject,
        keep,
        since: this.clock.monotonic(),
        resolve: resolve as Waiting['resolve'],
      })
      if (shortage !== undefined) throw tooBusy()
      this.next()
    })
  }

  /** Runs the next statement of a snapshot in its thread. */
  runIn<Row>(thread: ReadingThread, { sql, parameters }: SlowQuestion): Promise<QueryResult<Row>> {
    return new Promise((resolve, reject) => {
      thread.ask({ sql, parameters, resolve: resolve as Asked['resolve'], reject })
    })
  }

  async close(): Promise<void> {
    this.isClosed = true
    const closed = new Error('the database is closed')
    for (const asked of [...this.waiting.pages.clear(), ...this.waiting.exports.clear()]) asked.reject(closed)
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
      if (asked.keep) free.keptFor = asked.holder.owner
      free.ask(this.begun(asked))
    }
    this.next()
  }

  /** In fair turns, exports last. */
  private takeWaiting(): Waiting | undefined {
    const keepers = this.threads.flatMap(({ keptFor }) => keptFor ?? [])
    const mayRun = ({ sql, holder: { owner }, keep }: Waiting): boolean =>
      this.running.canTake({ owner }) &&
      (!keep || (keepers.length < MAX_KEPT && !keepers.includes(owner))) &&
      (!this.wasLong.get(durationKey(sql, owner)) || this.runningLong.canTake({ owner }))
    const mayExport = (one: Waiting) => mayRun(one) && this.runningLong.canTake({ owner: one.holder.owner })
    return (
      this.waiting.pages.next(mayRun) ??
      (this.runningExports === 0 ? this.waiting.exports.next(mayExport) : undefined)
    )
  }

  /** Counts it while it runs, and remembers whether it is long, even if it fails. */
  private begun({ sql, parameters, holder: { owner }, line, resolve, reject }: Waiting): Asked {
    const begunAt = this.clock.monotonic()
    const key = durationKey(sql, owner)
    const isExport = line === 'exports'
    const isLong = isExport || this.wasLong.get(key) === true
    this.running.take({ owner })
    if (isLong) this.runningLong.take({ owner })
    if (isExport) this.runningExports += 1
    const ended = () => {
      this.running.release({ owner })
      if (isLong) this.runningLong.release({ owner })
      if (isExport) this.runningExports -= 1
      this.remember(key, this.clock.monotonic() - begunAt >= LONG_MS)
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

  private remember(key: string, isLong: boolean): void {
    this.wasLong.delete(key)
    this.wasLong.set(key, isLong)
    const [oldest] = this.wasLong.keys()
    if (this.wasLong.size > MAX_REMEMBERED && oldest !== undefined) this.wasLong.delete(oldest)
  }
}

/** The same statement may be long in a workspace with much data, and short in others. */
function durationKey(sql: string, owner: string): string {
  return `${owner} ${sql}`
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
  private keeperOwner: string | undefined
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

  /** The workspace whose snapshot keeps it. */
  get keptFor(): string | undefined {
    return this.keeper && this.keeperOwner
  }

  set keptFor(owner: string | undefined) {
    this.keeperOwner = owner
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
