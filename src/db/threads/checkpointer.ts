/**
 * Brings what was committed from the write-ahead log over into the database file, beside the server's work.
 *
 * SQLite does so inside of a commit, every so many pages: 16 MB to be copied and two fsyncs, some 40 ms in which nobody is
 * answered. Here a thread with a connection of its own does it (`checkpoint-main.ts`) while others write. Since they do, it
 * never quite comes to the end, and the log would grow for as long as they went on; so from a certain length the next group
 * waits the few ms that the short rest takes, and the log begins anew. Long work, which fills the log as fast as the disk takes it,
 * makes room from half of that length on, when others go on meanwhile (`clear`): nobody else comes upon a log that is full of it. It
 * goes on itself while most of the log is brought over, and waits for the rest.
 *
 * Used by `group-commit.ts`. How far both are is asked of SQLite itself. Never opens a file of the database: closing any
 * descriptor of one drops every POSIX lock that this process holds on it, those of SQLite's own connections too (fcntl(2)).
 * Fails: never; while the thread cannot (a full disk, no thread to be had) the commits do it again, as they would by themselves,
 * and now and then the thread is tried.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor, type Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { SpawnThread, Thread } from '../../world/threads.js'
import type { CheckpointAnswer, CheckpointOptions } from './checkpoint-protocol.js'

export interface CheckpointerParts {
  readonly spawn: SpawnThread
  readonly log: Log
  readonly clock: Clock
}

export interface CheckpointedDatabase {
  /** Path of the database file. */
  readonly file: string
  /** Asked between two transactions. SQLite prepares the question anew each time: some ten microseconds. */
  readonly logLength: () => LogLength
  /** From now on commits do it themselves, or they leave it. */
  readonly commitsCheckpoint: (isWanted: boolean) => void
}

/** Pages worth the two fsyncs: 8 MB. */
const WORTHWHILE = 2_000
/** Pages from which on the log shall begin anew: 64 MB. */
const LONG = 16_000
/** Pages from which on long work sees to it that all of them are brought over: 32 MB. */
const LONG_FOR_LONG_WORK = LONG / 2
/** Pages from which on it waits for that whatever there is still to be done: 48 MB. */
const LONGEST_FOR_LONG_WORK = 0.75 * LONG
/** Until the end is reached in spite of what others write meanwhile: each time there is less left. */
const MOST_RUNS_TO_CLEAR = 4
/** Commits from one question for the length to the next: a few megabytes more or less make no difference. */
export const ASKED_EVERY = 8
/** For the rest; a disk that takes longer is in trouble, and the log may grow. */
const LONGEST_WAIT_MS = 1_000
/** Between two trials after a failure, doubled with each. */
const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 60_000
/** It needs a tenth of it. */
const HEAP_MEGABYTES = 128

const PROGRAM = new URL('./checkpoint-main.js', import.meta.url)

/** It could not be done, and the commits do it meanwhile. */
interface Trouble {
  readonly pauseMs: number
  /** On the monotonic clock. */
  readonly retryAt: number
}

export interface LogLength {
  /** Pages in the log. */
  readonly written: number
  /** Of those, in the database file too. */
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
  /** As it was when it was last asked for. */
  private length: LogLength = EMPTY
  private commitsToQuestion = 0
  /** Pages in the log when it last was not brought over to its end, for somebody reads in it. */
  private stuckAt = 0
  /** Pages in the log when long work last waited for it, since it began anew. */
  private clearedAt = 0
  /** Most of the log was brought over since then, or is being. */
  private isPrepared = false

  constructor(parts: CheckpointerParts, database: CheckpointedDatabase) {
    this.parts = parts
    this.database = database
    database.commitsCheckpoint(false)
  }

  /** To be called after each commit. @param commits where it is for several together */
  committed(commits = 1): void {
    if (this.isClosed || this.mustWait()) return
    this.commitsToQuestion -= commits
    if (this.commitsToQuestion > 0) return
    const { written, broughtOver } = this.ask()
    if (!this.running && written - broughtOver >= WORTHWHILE) void this.run()
  }

  /** To be awaited before the next commit where there is something to wait for. */
  room(): Promise<void> | undefined {
    if (this.isClosed || this.trouble) return undefined
    const { written } = this.length
    if (written < LONG) this.stuckAt = 0
    return written < this.stuckAt + LONG ? undefined : this.finish()
  }

  /** To be awaited before the next piece of long work where there is something to wait for; others need not wait meanwhile. */
  clear(): Promise<void> | undefined {
    if (this.isClosed || this.trouble) return undefined
    this.ask()
    if (!this.prepareToClear()) return undefined
    this.clearedAt = this.length.written
    this.isPrepared = false
    return Promise.race([this.runToTheEnd(), pauseFor(LONGEST_WAIT_MS)])
  }

  /**
   * Begins to bring most of a long log over, where that was not done yet.
   *
   * @returns whether long work is to pause for the rest (`clear`), by the length that was asked for last
   */
  prepareToClear(): boolean {
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
    // The next commit begins the log anew.
    this.commitsToQuestion = 0
  }

  private async runToTheEnd(): Promise<void> {
    for (let runs = 0; runs < MOST_RUNS_TO_CLEAR; runs += 1) {
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

  /** The log is as good as empty where it cannot be asked. */
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
