/**
 * Group commit: concurrent writes share one transaction and one fsync.
 *
 * A durable commit takes up to several milliseconds (an fsync); its statements take microseconds. So the queue of pending works is drained
 * into one transaction, each in its own savepoint, and every caller's promise settles only after the shared COMMIT. A work that throws
 * rolls back only its savepoint. A work alone in its transaction has no savepoint, since SQLite would copy each changed page for it, and
 * rolls back the transaction.
 *
 * Pieces of long work (`isLong`) have their own queue and never share a commit, so that no request waits for one. They run when no other
 * work waits, and at the latest after a few groups. While the log is checkpointed they wait and others proceed.
 *
 * A group is whatever waits; after a shared commit it waits a millisecond longer, for callers that return together.
 *
 * If BEGIN or COMMIT fails (locked by another process, disk full, I/O error), every work of that group rejects with `unavailable`.
 */
import { sql, type Kysely } from 'kysely'
import { nextTurn, pauseFor, type Clock } from '../../world/time/clock.js'
import type { Checkpointer } from './checkpointer.js'
import type { OnCommitted, Queries, Run, Tx, WriteOptions } from '../database.js'
import { asError, pendingWork, type PendingWork } from '../pending-work.js'
import { storageRefusal } from '../faults/storage-fault.js'
import type { LogSync } from './log-sync.js'
import type { StorageWatch } from './storage-watch.js'
import type { ReportedChanges } from '../changes.js'
import { statement } from '../statement.js'
import type { Tables } from '../tables.js'

/** A work of a group that has run, and its error if it threw. */
interface Done {
  readonly work: PendingWork
  readonly error?: Error
}

/**
 * A group accepts no more work after running this long, so that one turn of the event loop stays short: the SQLite driver is synchronous,
 * and awaiting promises alone never processes sockets.
 */
const GROUP_BUDGET_MS = 4

/** Pause before a group, if the last one was shared. */
const GATHER_MS = 1

/** Maximum number of groups before long work gets a turn. */
const MAX_GROUPS_BEFORE_LONG = 4

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

export class GroupCommit {
  private readonly waiting: PendingWork[] = []
  private readonly long: PendingWork[] = []
  /** The running checkpoint, which long work waits for. */
  private clearing: Promise<void> | undefined
  /** Groups since the last long work. */
  private groupsSinceLong = 0
  /** Works in the last group. */
  private lastGroupSize = 0
  private readonly writer: Kysely<Tables>
  private readonly clock: Clock
  private readonly checkpointer: Checkpointer | undefined
  private readonly storage: StorageWatch | undefined
  private readonly logSync: GroupCommitParts['logSync']
  private readonly run: Run | undefined
  private readonly changes: ReportedChanges | undefined
  private readonly onCommitted: OnCommitted | undefined
  private draining: Promise<void> | undefined

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

  write<T>(work: (tx: Tx) => Promise<T>, { isLong = false }: WriteOptions = {}): Promise<T> {
    const { pending, result } = pendingWork(work, topic => this.changes?.report(topic))
    const line = isLong ? this.long : this.waiting
    line.push(pending)
    this.startDraining()
    return result
  }

  private startDraining(): void {
    this.draining ??= this.drain()
  }

  /** Resolves when no write is pending or running. */
  async idle(): Promise<void> {
    while (this.draining ?? this.clearing) await (this.draining ?? this.clearing)
  }

  private async drain(): Promise<void> {
    try {
      // Calls to write() in the same turn join the same group.
      await nextTurn()
      while (this.waiting.length > 0 || this.isTurnOfLong()) {
        if (this.isTurnOfLong()) await this.commitLong()
        else await this.commitWaiting()
        await nextTurn()
      }
    } finally {
      // In the same step as the last check above, so that no work added now is left behind.
      this.draining = undefined
    }
  }

  private isTurnOfLong(): boolean {
    if (this.long.length === 0 || this.clearing) return false
    return this.waiting.length === 0 || this.groupsSinceLong >= MAX_GROUPS_BEFORE_LONG
  }

  private async commitLong(): Promise<void> {
    this.clearing = this.checkpointer?.clear()?.finally(() => {
      this.clearing = undefined
      this.startDraining()
    })
    if (this.clearing) return
    this.groupsSinceLong = 0
    await this.commit(this.long)
  }

  private async commitWaiting(): Promise<void> {
    this.groupsSinceLong += 1
    // Callers that shared a commit tend to return together: a millisecond lets them share the next one.
    if (this.lastGroupSize > 1 && this.long.length === 0) await pauseFor(GATHER_MS)
    this.lastGroupSize = await this.commit(this.waiting)
  }

  /** @returns number of works that shared it */
  private async commit(line: PendingWork[]): Promise<number> {
    await this.checkpointer?.room()
    const size = await this.commitGroup(line)
    this.checkpointer?.committed()
    return size
  }

  private async commitGroup(line: PendingWork[]): Promise<number> {
    const begun: PendingWork[] = []
    const done: Done[] = []
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
            begun.push(next)
            done.push(await runInSavepoint(next, db, isAlone))
          } while (!isAlone && this.clock.monotonic() - started < GROUP_BUDGET_MS)
        } finally {
          db.run = undefined
        }
      })
      const syncing = this.logSync?.sync()
      if (syncing) await syncing
      // Commits to a deleted file are lost.
      this.storage?.requireFiles()
      this.storage?.committed()
      this.onCommitted?.(this.clock.monotonic() - begunAt, done.length)
    } catch (thrown) {
      this.storage?.failed(thrown)
      const refusal = storageRefusal(asError(thrown))
      // If BEGIN failed no work has run; the waiting ones would fail the same way.
      for (const work of begun.length > 0 ? begun : line.splice(0)) work.fail(refusal)
      return begun.length
    }
    for (const { work, error } of done)
      if (error) work.fail(error)
      else work.succeed()
    return done.length
  }
}

const savepoint = statement(() => sql`savepoint work`)
const rollBack = statement(() => sql`rollback to savepoint work`)
const release = statement(() => sql`release savepoint work`)

/**
 * Runs a work in its own savepoint, or without one if it is alone: an error then rolls back the transaction.
 *
 * Rejects only if the transaction is lost.
 */
async function runInSavepoint(work: PendingWork, db: Queries, isAlone: boolean): Promise<Done> {
  if (isAlone) {
    await work.run(db)
    return { work }
  }
  await savepoint(db, {})
  try {
    await work.run(db)
  } catch (thrown) {
    const error = asError(thrown)
    // After an automatic rollback (disk full), the original error matters more than this one.
    await rollBack(db, {}).catch(() => {
      throw error
    })
    await release(db, {})
    return { work, error }
  }
  await release(db, {})
  return { work }
}
