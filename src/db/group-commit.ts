/**
 * Group commit: writes that wait at the same time share one transaction and one fsync.
 *
 * A durable commit costs a fraction of a millisecond to several (an fsync); the statements in it cost microseconds.
 * So the queue of waiting works is drained into one transaction, each work inside its own savepoint, and every
 * caller's promise settles only after the shared COMMIT. A work that throws takes back only its own savepoint. One that
 * is alone has none and takes back the transaction: for a savepoint SQLite copies each page that is changed.
 *
 * Pieces of long work (`isLong`) wait in a line of their own and share commits with nobody else, so that no request waits for the rest
 * of one that it has come into. They have a turn when nobody else waits or has just written, or all others can, and at the latest after
 * some groups. So has a thread of this process that writes on a connection of its own (`lend`): it gets the turn, this connection waits
 * for its end, and whoever else wants to write has the thread told.
 * While the log that they fill is brought over, they wait and others go on.
 *
 * Fails: when BEGIN or COMMIT itself fails (locked by another process, disk full, I/O error), every work of that group rejects
 * with `unavailable`.
 */
import type { Kysely } from 'kysely'
import { nextTurn, pauseFor, type Clock } from '../world/time/clock.js'
import { ASKED_EVERY, type Checkpointer } from './threads/checkpointer.js'
import type { LentTurn, Queries, Run, Tx, WriteOptions } from './database.js'
import { storageRefusal } from './sqlite/storage-fault.js'
import type { LogSync } from './sqlite/log-sync.js'
import type { StorageWatch } from './sqlite/storage-watch.js'
import { command } from './statement.js'
import type { Tables } from './tables.js'

/** One caller's work on its way through a group. */
interface Work {
  /** Whether a few ms more make no difference to whoever asked for it. */
  readonly canWait: boolean
  /** How many it stands for, as long as it has not begun. */
  readonly callers: () => number
  /**
   * Runs it in its own savepoint; what it throws is kept for `settle`. Rejects only when the transaction is lost.
   *
   * @param isAlone then without a savepoint: what it throws takes the transaction back
   */
  run(db: Queries, isAlone: boolean): Promise<void>
  /** Tells the caller how it ended, after the shared COMMIT or its failure. */
  settle(commitError?: Error): void
}

/**
 * A group takes in no further work once it has run this long, so that one turn of the event loop stays short: the
 * SQLite driver is synchronous, and promises alone do not let sockets have their turn.
 */
const GROUP_BUDGET_MS = 4

/** What is left from one group to the next of how many were usual. */
const FADING = 0.9
/** Lone commits between two trials at the most. */
const RAREST_TRIAL = 64
/** Pauses of a millisecond that a group is gathered for at most. */
const MOST_PAUSES = 8
/** Groups that go before long work at most: whatever comes, it goes on. */
const MOST_BEFORE = 4
/** What was asked for is rarely one write alone: for so long after a group long work leaves the next one the turn. */
const REST_MS = 1

export interface GroupCommitParts {
  /** For a database whose commits do not bring their log over themselves. */
  readonly checkpointer?: Checkpointer | undefined
  /** Asked before anybody is told of a commit. */
  readonly storage?: StorageWatch | undefined
  /** For a writer whose commits do not wait for the disk: nobody is told of one before this has. */
  readonly logSync?: Pick<LogSync, 'mayBegin' | 'sync'> | undefined
  /** What the statements of stores go to directly, where the writer's connection has such a thing. */
  readonly run?: Run
  readonly onCommitted?: OnCommitted | undefined
}

/** Told after each commit. @param durationMs from BEGIN until it was on disk @param works that shared it */
export type OnCommitted = (durationMs: number, works: number) => void

export class GroupCommit {
  private readonly waiting: Work[] = []
  private readonly long: Work[] = []
  /** Threads that wait for a turn. */
  private readonly borrowers: (() => Promise<void>)[] = []
  private wasLent = false
  /** Whoever has the turn meanwhile is to hear that somebody else wants it. */
  private onWanted: (() => void) | undefined
  /** What long work waits for beside its turn. */
  private clearing: Promise<void> | undefined
  /** Groups since long work had its turn. */
  private sinceLong = 0
  /** The last group had somebody in it who may write again soon. */
  private mayFollow = false
  private readonly writer: Kysely<Tables>
  private readonly clock: Clock
  private readonly checkpointer: Checkpointer | undefined
  private readonly storage: StorageWatch | undefined
  private readonly logSync: GroupCommitParts['logSync']
  private readonly run: Run | undefined
  private readonly onCommitted: OnCommitted | undefined
  private draining: Promise<void> | undefined
  /** Of works that were alone in their commit: how many have yet to pass until gathering is tried again. */
  private loneCommitsToTrial = 1
  private trialEvery = 1
  /** How many shared the last commit. */
  private lastCallers = 0
  /** How many lately shared a commit; fades where fewer come. */
  private usualCallers = 0

  constructor(writer: Kysely<Tables>, clock: Clock, parts: GroupCommitParts = {}) {
    const { checkpointer, storage, logSync, run, onCommitted } = parts
    this.writer = writer
    this.clock = clock
    this.checkpointer = checkpointer
    this.storage = storage
    this.logSync = logSync
    this.run = run
    this.onCommitted = onCommitted
  }

  write<T>(
    work: (tx: Tx) => Promise<T>,
    { canWait = false, isLong = false, callers = onlyOne }: WriteOptions = {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const line = isLong ? this.long : this.waiting
      line.push({ canWait, callers, ...savepointWork(work, resolve, reject) })
      this.onWanted?.()
      this.startDraining()
    })
  }

  /** See `Lending`. */
  lend(use: (turn: LentTurn) => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.borrowers.push(() => this.leaveTo(use).then(resolve, reject))
      this.onWanted?.()
      this.startDraining()
    })
  }

  private startDraining(): void {
    this.draining ??= this.drain().finally(() => (this.draining = undefined))
  }

  /** Resolves when no write waits or runs. */
  async idle(): Promise<void> {
    while (this.draining) await this.draining
  }

  private async drain(): Promise<void> {
    // Whoever calls write() in the same turn gets into the same group.
    await nextTurn()
    while (this.waiting.length + this.long.length + this.borrowers.length > 0) {
      if (this.mayAnotherCome()) await this.rest()
      else if (this.isTurnOfLong()) await this.takeLong()
      else if (this.waiting.length > 0) await this.commitTogether()
      else await pauseFor(1)
      await nextTurn()
    }
  }

  /** Of those who do not wait: one follows the other, and long work has been kept waiting by few. */
  private mayAnotherCome(): boolean {
    return this.mayFollow && this.waiting.length === 0 && this.sinceLong < MOST_BEFORE
  }

  private async rest(): Promise<void> {
    this.mayFollow = false
    await pauseFor(REST_MS)
  }

  /** What is done here and what is done by threads take turns. */
  private async takeLong(): Promise<void> {
    this.clearing = this.checkpointer?.clear()?.finally(() => (this.clearing = undefined))
    if (this.clearing) return
    const borrower = this.long.length === 0 || !this.wasLent ? this.borrowers.shift() : undefined
    this.wasLent = borrower !== undefined
    if (borrower) await borrower()
    else await this.commit(this.long)
  }

  private async leaveTo(use: (turn: LentTurn) => Promise<void>): Promise<void> {
    await this.checkpointer?.room()
    try {
      this.logSync?.mayBegin()
      this.storage?.mayBegin()
      // The rest is for what was accepted: to deliver and settle it.
      this.storage?.requireRoom()
      await use({
        onWanted: end => this.endWhenWanted(end),
        committed: durationsMs => this.lookAfterTurn(durationsMs),
      })
      this.storage?.requireFiles()
      this.storage?.committed()
    } catch (thrown) {
      this.storage?.failed(thrown)
      throw storageRefusal(asError(thrown))
    } finally {
      this.onWanted = undefined
      this.checkpointer?.committed(ASKED_EVERY)
    }
  }

  private endWhenWanted(end: () => void): void {
    this.onWanted = end
    if (this.waiting.length + this.long.length + this.borrowers.length > 0) end()
  }

  /** What is looked after at the end of each turn, in a long one. */
  private lookAfterTurn(durationsMs: readonly number[]): void {
    for (const duration of durationsMs) this.onCommitted?.(duration, 1)
    try {
      this.storage?.requireFiles()
      this.storage?.requireRoom()
      this.checkpointer?.committed(ASKED_EVERY)
      if (this.checkpointer?.prepareToClear() !== true) return
    } catch {
      // It is told at the end of the turn, or in place of the next one.
    }
    this.onWanted?.()
  }

  /** While others only wait for company it may as well go first, but not twice in a row. */
  private isTurnOfLong(): boolean {
    if (!this.isLongWaiting || this.clearing) return false
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

  /** @returns how many callers shared it */
  private async commit(line: Work[]): Promise<number> {
    await this.checkpointer?.room()
    const callers = await this.commitGroup(line)
    this.checkpointer?.committed()
    return callers
  }

  /**
   * Who shared a commit is likely to come back at the same time, one after the other: until as many wait as lately did, or
   * nobody came for a millisecond, the group is not complete, and an fsync costs more than the moment. Whoever writes alone
   * may be one of many that come at odd times; now and then it is tried whether a moment brings others, and seldom where
   * it does not.
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
      // Company is worth no more than long work's time: that would only wait for its turn meanwhile.
      if (this.isLongWaiting || ((isComplete || callers <= known) && !canAllWait())) return
      known = callers
      await pauseFor(1)
    }
  }

  private get isLongWaiting(): boolean {
    return this.long.length + this.borrowers.length > 0
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
        // This group's own object, on which its statements find their direct way for as long as it is open.
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
      // What was committed into a deleted file is as good as not written.
      this.storage?.requireFiles()
      this.storage?.committed()
      this.onCommitted?.(this.clock.monotonic() - begunAt, group.length)
    } catch (thrown) {
      this.storage?.failed(thrown)
      const refusal = storageRefusal(asError(thrown))
      // Where BEGIN itself failed nobody has run yet, and whoever waits would only meet the same.
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
        // Where the database has rolled everything back by itself (disk full) the cause is worth more than its echo.
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

/** A callback that throws is a fault of the program, and must not keep the others of its group from hearing. */
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
