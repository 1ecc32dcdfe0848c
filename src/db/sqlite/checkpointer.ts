/**
 * Checkpoints the write-ahead log in a thread, beside the server's work.
 *
 * SQLite would checkpoint within a commit: 16 MB to copy and two fsyncs block the process for some 40 ms. Here a thread with its own
 * connection does it (`checkpoint-main.ts`) while others write. Under constant writes a checkpoint never quite completes and the log would
 * keep growing, so above a certain size the next group waits the few ms that the remainder takes, and the log restarts. Long work, which
 * fills the log at disk speed, pauses from half of that size on until the log is checkpointed (`clear`), so that other writes never meet a
 * full log.
 *
 * Used by `group-commit.ts`. Asks SQLite for the progress. Never opens a database file: closing any descriptor of one drops every POSIX
 * lock that this process holds on it, including those of SQLite's connections (fcntl(2)).
 * Never throws; if the thread fails (full disk, cannot be started), commits checkpoint as usual, and the thread is retried periodically.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import type { Thread } from '../../world/threads.js'
import type { Services } from '../services.js'

/** Of the thread. */
export interface CheckpointOptions {
  /** Path of the database file. */
  readonly file: string
}

/** One per message to the thread. */
export interface CheckpointAnswer {
  /** Why it failed. */
  readonly error?: string
}

export type CheckpointerParts = Pick<Services, 'clock' | 'log' | 'spawn'>

export interface CheckpointedDatabase {
  /** Path of the database file. */
  readonly file: string
  /** Called between transactions. SQLite compiles the pragma each time: some ten microseconds. */
  readonly logLength: () => LogLength
  /** Switches checkpoints within commits on or off. */
  readonly commitsCheckpoint: (isWanted: boolean) => void
}

/** Pages worth two fsyncs: 8 MB. */
const WORTHWHILE = 2_000
/** Log size from which commits wait for the log to restart, in pages: 64 MB. */
const LONG = 16_000
/** Log size from which long work checks that all pages are checkpointed: 32 MB. */
const LONG_FOR_LONG_WORK = LONG / 2
/** Log size from which it waits for that however much remains: 48 MB. */
const LONGEST_FOR_LONG_WORK = 0.75 * LONG
/** Runs to complete a checkpoint while others write; each leaves less. */
const MAX_CLEARING_RUNS = 4
/** Commits between two queries of the log size; a few megabytes do not matter. */
const ASKED_EVERY = 8
/** Maximum wait; if the disk takes longer, the log may grow. */
const LONGEST_WAIT_MS = 1_000
/** Retry delay after a failure, doubled each time. */
const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 60_000
/** Heap limit; the thread needs a tenth of it. */
const HEAP_MEGABYTES = 128

const PROGRAM = new URL('./checkpoint-main.js', import.meta.url)

/** It failed; commits checkpoint meanwhile. */
interface Trouble {
  readonly pauseMs: number
  /** On the monotonic clock. */
  readonly retryAt: number
}

export interface LogLength {
  /** Pages in the log. */
  readonly written: number
  /** Of those, checkpointed pages. */
  readonly broughtOver: number
}

const EMPTY: LogLength = { written: 0, broughtOver: 0 }

export class Checkpointer {
  private readonly parts: CheckpointerParts
  private readonly database: CheckpointedDatabase
  private thread: Thread | undefined
  private isClosed = false
  private trouble: Trouble | undefined
  private running: Promise<void> | undefined
  private onAnswer: (() => void) | undefined
  /** As last queried. */
  private length: LogLength = EMPTY
  private commitsToQuestion = 0
  /** Log size when a checkpoint was last incomplete because of a reader. */
  private stuckAt = 0
  /** Log size when long work last waited for it; reset when the log restarts. */
  private clearedAt = 0
  /** Whether most of the log has been checkpointed since then, or is being. */
  private isPrepared = false

  constructor(parts: CheckpointerParts, database: CheckpointedDatabase) {
    this.parts = parts
    this.database = database
    database.commitsCheckpoint(false)
  }

  /** Call after each commit. */
  committed(): void {
    if (this.isClosed || this.mustWait()) return
    this.commitsToQuestion -= 1
    if (this.commitsToQuestion > 0) return
    const { written, broughtOver } = this.ask()
    if (!this.running && written - broughtOver >= WORTHWHILE) void this.run()
  }

  /** Await before the next commit, if defined. */
  room(): Promise<void> | undefined {
    if (this.isClosed || this.trouble) return undefined
    const { written } = this.length
    if (written < LONG) this.stuckAt = 0
    return written < this.stuckAt + LONG ? undefined : this.finish()
  }

  /** Await before the next piece of long work, if defined; other writes need not wait. */
  clear(): Promise<void> | undefined {
    if (this.isClosed || this.trouble) return undefined
    this.ask()
    if (!this.prepareToClear()) return undefined
    this.clearedAt = this.length.written
    this.isPrepared = false
    return Promise.race([this.runToTheEnd(), pauseFor(LONGEST_WAIT_MS)])
  }

  /**
   * Starts checkpointing most of a long log, unless already done.
   *
   * @returns whether long work must pause for the rest (`clear`), by the last queried size
   */
  private prepareToClear(): boolean {
    const { written } = this.length
    if (this.isClosed || this.trouble) return false
    if (written < LONG_FOR_LONG_WORK) this.clearedAt = 0
    const grown = written - this.clearedAt
    if (grown < LONG_FOR_LONG_WORK) return false
    if (grown >= LONGEST_FOR_LONG_WORK) return true
    if (this.running) return false
    if (!this.isPrepared) void this.run()
    const { isPrepared } = this
    this.isPrepared = true
    return isPrepared
  }

  async close(): Promise<void> {
    this.isClosed = true
    if (this.running) await Promise.race([this.running, pauseFor(LONGEST_WAIT_MS)])
    await this.thread?.terminate()
  }

  private async finish(): Promise<void> {
    await Promise.race([this.finishRunning(), pauseFor(LONGEST_WAIT_MS)])
    const { written, broughtOver } = this.ask()
    if (broughtOver < written) this.stuckAt = written
    // The next commit restarts the log.
    this.commitsToQuestion = 0
  }

  private async runToTheEnd(): Promise<void> {
    for (let runs = 0; runs < MAX_CLEARING_RUNS; runs += 1) {
      await this.running
      const { written, broughtOver } = this.ask()
      if (broughtOver === written || this.isClosed || this.trouble) return
      await this.run()
    }
  }

  private async finishRunning(): Promise<void> {
    await this.running
    await this.run()
  }

  private run(): Promise<void> {
    this.running = new Promise<void>(resolve => {
      this.onAnswer = resolve
      this.thread ??= this.start()
      this.thread.post('checkpoint')
    }).finally(() => (this.running = undefined))
    return this.running
  }

  private start(): Thread {
    const options: CheckpointOptions = { file: this.database.file }
    return this.parts.spawn(PROGRAM, {
      options,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => {
        const { error } = message as CheckpointAnswer
        if (error === undefined) this.succeeded()
        else this.failed(error)
        this.onAnswer?.()
      },
      onEnd: ({ exitCode, fault }) => {
        this.thread = undefined
        this.failed(fault?.message ?? `exit code ${exitCode}`)
        this.onAnswer?.()
      },
    })
  }

  private mustWait(): boolean {
    return this.trouble !== undefined && this.parts.clock.monotonic() < this.trouble.retryAt
  }

  private failed(error: string): void {
    if (this.isClosed) return
    if (!this.trouble) {
      this.parts.log.error('checkpoint thread failed', { error })
      this.database.commitsCheckpoint(true)
    }
    const pauseMs = this.trouble ? Math.min(2 * this.trouble.pauseMs, LAST_RETRY_MS) : FIRST_RETRY_MS
    this.trouble = { pauseMs, retryAt: this.parts.clock.monotonic() + pauseMs }
  }

  private succeeded(): void {
    if (!this.trouble) return
    this.trouble = undefined
    this.parts.log.info('checkpoint thread recovered')
    this.database.commitsCheckpoint(false)
  }

  /** Treated as empty if it cannot be queried. */
  private ask(): LogLength {
    this.commitsToQuestion = ASKED_EVERY
    try {
      this.length = this.database.logLength()
    } catch (error) {
      this.failed(describeError(error))
      this.length = EMPTY
    }
    return this.length
  }
}
