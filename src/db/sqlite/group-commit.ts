/**
 * Group commit: concurrent writes share one transaction and one fsync.
 *
 * A durable commit takes up to several milliseconds (an fsync); its statements take microseconds. So the queue of pending works is drained
 * into one transaction, each in its own savepoint, and every caller's promise settles only after the shared COMMIT. A work that throws
 * rolls back only its savepoint. A work alone in its transaction has no savepoint, since SQLite would copy each changed page for it, and
 * rolls back the transaction.
 *
 * Pieces of long work (`isLong`) have their own queue and never share a commit, so that no request waits for one. They run when no other
 * work waits or has just run, or when all others can wait, and at the latest after a few groups. While the log is checkpointed they wait and
 * others proceed.
 *
 * If BEGIN or COMMIT fails (locked by another process, disk full, I/O error), every work of that group rejects with `unavailable`.
 */
import type { Kysely } from 'kysely'
import { nextTurn, pauseFor, type Clock } from '../../world/time/clock.js'
import type { Checkpointer } from './checkpointer.js'
import type { Queries, Run, Tx, WriteOptions } from '../database.js'
import { storageRefusal } from './storage-fault.js'
import type { LogSync } from './log-sync.js'
import type { StorageWatch } from './storage-watch.js'
import type { ReportedChanges } from '../changes.js'
import { command } from '../statement.js'
import type { Tables } from '../tables.js'

/** A caller's pending work. */
interface Work {
  /** Whether the caller can wait a few ms more. */
  readonly canWait: boolean
  /** Number of callers it stands for, until it has begun. */
  readonly callers: () => number
  /**
   * Runs it in its own savepoint and keeps an error for `settle`. Rejects only if the transaction is lost.
   *
   * @param isAlone without a savepoint: an error rolls back the transaction
   */
  run(db: Queries, isAlone: boolean): Promise<void>
  /** Reports the result to the caller, after the shared COMMIT or its failure. */
  settle(commitError?: Error): void
}

/**
 * A group accepts no more work after running this long, so that one turn of the event loop stays short: the SQLite driver is synchronous,
 * and awaiting promises alone never processes sockets.
 */
const GROUP_BUDGET_MS = 4

/** Decay of the usual group size from one group to the next. */
const FADING = 0.9
/** Maximum number of lone commits between two attempts to gather. */
const RAREST_TRIAL = 64
/** Maximum pauses of a millisecond for gathering a group. */
const MOST_PAUSES = 8
/** Maximum number of groups before long work gets a turn. */
const MOST_BEFORE = 4
/** Requests often write more than once: after a group, long work lets other writes go first for this long. */
const REST_MS = 1

export interface GroupCommitParts {
  /** For a database whose commits do not checkpoint. */
  readonly checkpointer?: Checkpointer | undefined
  /** Checked before a commit is acknowledged. */
  readonly storage?: StorageWatch | undefined
  /** For a writer whose commits are not synced: no caller is notified before this. */
  readonly logSync?: Pick<LogSync, 'mayBegin' | 'sync'> | undefined
  /** Direct path for the stores' statements, if the writer's connection has one. */
  readonly run?: Run
  readonly changes?: ReportedChanges
  readonly onCommitted?: OnCommitted | undefined
}

/** Called after each commit. @param durationMs from BEGIN until durable @param works that shared it */
export type OnCommitted = (durationMs: number, works: number) => void

export class GroupCommit {
  private readonly waiting: Work[] = []
  private readonly long: Work[] = []
  /** What long work waits for in addition to its turn. */
  private clearing: Promise<void> | undefined
  /** Groups since the last long work. */
  private sinceLong = 0
  /** Whether the last group had callers that may soon write again. */
  private mayFollow = false
  private readonly writer: Kysely<Tables>
  private readonly clock: Clock
  private readonly checkpointer: Checkpointer | undefined
  private readonly storage: StorageWatch | undefined
  private readonly logSync: GroupCommitParts['logSync']
  private readonly run: Run | undefined
  private readonly changes: ReportedChanges | undefined
  private readonly onCommitted: OnCommitted | undefined
  private draining: Promise<void> | undefined
  /** Lone works to skip before gathering is tried again. */
  private loneCommitsToTrial = 1
  private trialEvery = 1
  /** Size of the last group. */
  private lastCallers = 0
  /** Usual group size lately; decays. */
  private usualCallers = 0

  constructor(writer: Kysely<Tables>, clock: Clock, parts: GroupCommitParts = {}) {
    const { checkpointer, storage, logSync, run, changes, onCommitted } = parts
    this.writer = writer
    this.clock = clock
    this.checkpointer = checkpointer
    this.storage = storage
    this.logSync = logSync
    this.run = run
    this.changes = changes
    this.onCommitted = onCommitted
  }

  write<T>(
    work: (tx: Tx) => Promise<T>,
    { canWait = false, isLong = false, callers = onlyOne }: WriteOptions = {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const line = isLong ? this.long : this.waiting
      line.push({ canWait, callers, ...savepointWork(work, this.changes, resolve, reject) })
      this.draining ??= this.drain().finally(() => (this.draining = undefined))
    })
  }

  /** Resolves when no write is pending or running. */
  async idle(): Promise<void> {
    while (this.draining) await this.draining
  }

  private async drain(): Promise<void> {
    // Calls to write() in the same turn join the same group.
    await nextTurn()
    while (this.waiting.length + this.long.length > 0) {
      if (this.mayAnotherCome()) await this.rest()
      else if (this.isTurnOfLong()) await this.takeLong()
      else if (this.waiting.length > 0) await this.commitTogether()
      else await pauseFor(1)
      await nextTurn()
    }
  }

  /** Whether long work leaves the turn to a write that is likely to follow; not once it has waited for several groups. */
  private mayAnotherCome(): boolean {
    return this.mayFollow && this.waiting.length === 0 && this.sinceLong < MOST_BEFORE
  }

  private async rest(): Promise<void> {
    this.mayFollow = false
    await pauseFor(REST_MS)
  }

  private async takeLong(): Promise<void> {
    this.clearing = this.checkpointer?.clear()?.finally(() => (this.clearing = undefined))
    if (!this.clearing) await this.commit(this.long)
  }

  /** While others only gather company, long work may go first, but not twice in a row. */
  private isTurnOfLong(): boolean {
    if (this.long.length === 0 || this.clearing) return false
    const isTurn =
      this.waiting.length === 0 ||
      this.sinceLong >= MOST_BEFORE ||
      (this.sinceLong > 0 && this.waiting.every(({ canWait }) => canWait))
    this.sinceLong = isTurn ? 0 : this.sinceLong + 1
    return isTurn
  }

  private async commitTogether(): Promise<void> {
    await this.gather()
    this.mayFollow = this.waiting.some(({ canWait }) => !canWait)
    this.lastCallers = await this.commit(this.waiting)
    this.usualCallers = Math.max(this.lastCallers, FADING * this.usualCallers)
  }

  /** @returns number of callers that shared it */
  private async commit(line: Work[]): Promise<number> {
    await this.checkpointer?.room()
    const callers = await this.commitGroup(line)
    this.checkpointer?.committed()
    return callers
  }

  /**
   * Callers that shared a commit often return together. So a group gathers until it has its usual size, or none arrived for a millisecond,
   * since an fsync costs more than that. After lone commits gathering is tried only occasionally, and more rarely if it brings nothing.
   */
  private async gather(): Promise<void> {
    const canAllWait = () => this.waiting.every(({ canWait }) => canWait)
    const isLone = this.lastCallers <= 1 && !canAllWait()
    if (isLone && this.loneCommitsToTrial > 0) {
      this.loneCommitsToTrial -= 1
      return
    }
    await this.pauseWhileMoreCome(canAllWait)
    const hasHelped = this.callersWaiting > 1
    if (isLone) this.trialEvery = hasHelped ? 1 : Math.min(2 * this.trialEvery, RAREST_TRIAL)
    if (isLone && !hasHelped) this.loneCommitsToTrial = this.trialEvery
  }

  private async pauseWhileMoreCome(canAllWait: () => boolean): Promise<void> {
    let known = 0
    for (let pauses = 0; pauses < MOST_PAUSES; pauses += 1) {
      const callers = this.callersWaiting
      const isComplete = callers > 1 && callers >= this.usualCallers
      // Gathering is not worth delaying long work.
      if (this.long.length > 0 || ((isComplete || callers <= known) && !canAllWait())) return
      known = callers
      await pauseFor(1)
    }
  }

  private get callersWaiting(): number {
    return this.waiting.reduce((sum, { callers }) => sum + callers(), 0)
  }

  private async commitGroup(line: Work[]): Promise<number> {
    const group: Work[] = []
    let callers = 0
    const begunAt = this.clock.monotonic()
    try {
      this.logSync?.mayBegin()
      this.storage?.mayBegin()
      await this.writer.transaction().execute(async transaction => {
        const started = this.clock.monotonic()
        const isAlone = line.length === 1
        // The group's own object, through which its statements use the direct path while it is open.
        const db = Object.assign(transaction, { run: this.run })
        try {
          do {
            const next = line.shift()
            if (!next) break
            group.push(next)
            callers += next.callers()
            await next.run(db, isAlone)
          } while (!isAlone && this.clock.monotonic() - started < GROUP_BUDGET_MS)
        } finally {
          db.run = undefined
        }
      })
      const syncing = this.logSync?.sync()
      if (syncing) await syncing
      // What was committed into a deleted file is lost.
      this.storage?.requireFiles()
      this.storage?.committed()
      this.onCommitted?.(this.clock.monotonic() - begunAt, group.length)
    } catch (thrown) {
      this.storage?.failed(thrown)
      const refusal = storageRefusal(asError(thrown))
      // If BEGIN failed no work has run; the waiting ones would fail the same way.
      for (const work of group.length > 0 ? group : line.splice(0)) work.settle(refusal)
      return callers
    }
    for (const work of group) work.settle()
    return callers
  }
}

const onlyOne = () => 1

function savepointWork<T>(
  work: (tx: Tx) => Promise<T>,
  changes: ReportedChanges | undefined,
  resolve: (value: T) => void,
  reject: (error: Error) => void,
): Pick<Work, 'run' | 'settle'> {
  const callbacks: (() => void)[] = []
  const rollbacks: (() => void)[] = []
  const fail = (error: Error) => {
    reject(error)
    for (const callback of rollbacks) callInOrder(callback)
  }
  let finish = (): void => reject(new Error('the transaction ended before this work was done'))
  return {
    async run(db, isAlone) {
      if (!isAlone) await command(db, 'savepoint work')
      try {
        const result = await work({
          db,
          changed: topic => callbacks.push(() => changes?.report(topic)),
          onCommit: callback => callbacks.push(callback),
          onRollback: callback => rollbacks.push(callback),
        })
        finish = () => {
          resolve(result)
          for (const callback of callbacks) callInOrder(callback)
        }
      } catch (thrown) {
        if (isAlone) throw thrown
        finish = () => fail(asError(thrown))
        // If the database rolled back by itself (disk full), the cause matters more than this error.
        await command(db, 'rollback to savepoint work').catch(() => {
          throw asError(thrown)
        })
      }
      if (!isAlone) await command(db, 'release savepoint work')
    },
    settle(commitError) {
      if (commitError) fail(commitError)
      else finish()
    },
  }
}

/** An error in a callback is a bug, and must not keep other callers from being notified. */
function callInOrder(callback: () => void): void {
  try {
    callback()
  } catch (fault) {
    queueMicrotask(() => {
      throw asError(fault)
    })
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
