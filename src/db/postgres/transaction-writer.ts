/**
 * Writes on PostgreSQL: works that wait at the same time share a transaction, which saves round trips and commits.
 *
 * A group has no savepoints, each of which would cost two round trips and a subtransaction. A work that throws before it changed a row
 * fails alone; otherwise the transaction is rolled back, the works before and after it run again as a group, and it runs again alone. So a
 * work may run more than once.
 *
 * Only works that wait when a transaction begins share it: it shows every commit that their callers know of.
 *
 * Transactions see one snapshot (REPEATABLE READ): what a work decides from rows that another node changes meanwhile fails with a
 * serialization failure, and runs again. Rows that many writes change, such as an audience's counts, would fail some of them over and over:
 * after `CONFLICTS_TOGETHER` of them a group runs alone, while no other ordinary write of any node is in progress. Long work (`isLong`) has
 * its own line and connection and takes no turns, since everybody would wait for it.
 *
 * A commit whose answer was lost is looked up (`pg_xact_status`), so that callers learn what happened to it; after a crash of the server or a
 * failover that cannot be known, and they get an error that asks for a retry.
 * Works reject with `unavailable` if the database is gone or too busy.
 */
import { sql, type Kysely } from 'kysely'
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { nextTurn, pauseFor } from '../../world/time/clock.js'
import type { Topic } from '../changes.js'
import type { OnCommitted, Queries, Tx, WriteOptions } from '../database.js'
import { asError, pendingWork, type PendingWork } from '../pending-work.js'
import type { Services } from '../services.js'
import type { Tables } from '../tables.js'
import { CommitError, SERVER_RUN } from './postgres-dialect.js'
import { isConflict, isPostgresError, isViolation, postgresRefusal } from '../faults/postgres-fault.js'

/** A group accepts no more work after running this long. */
const GROUP_BUDGET_MS = 10
/** Pause before a group if the last one was shared. */
const GATHER_MS = 1
/** After a conflict. */
const RETRY: BackoffPolicy = { firstMs: 2, factor: 2, maxMs: 100 }
const MAX_CONFLICTS = 10
/** A group with more runs alone. */
const CONFLICTS_TOGETHER = 2
/** Lookups of a commit's status while the server is unreachable, and the pause between them. */
const FATE_TRIES = 20
const FATE_PAUSE_MS = 500

export interface TransactionWriterParts extends Pick<Services, 'clock' | 'random'> {
  /** Called after the commit for each topic that a work changed. */
  readonly report: (topic: Topic) => void
  /** For looking up the status of a commit. */
  readonly reader: Kysely<Tables>
  readonly onCommitted?: OnCommitted | undefined
}

/** With which other writes a transaction may run. `none`: with all; `shared`: with those that share; `alone`: with those of `none` only. */
export type Turn = 'none' | 'shared' | 'alone'

/** A Kysely whose transactions count their writes. */
export interface WritingConnection {
  readonly db: Kysely<Tables>
  /** Statements so far that may have changed rows. */
  readonly writes: () => number
  /** For the transactions that begin from now on. */
  readonly takeTurn: (turn: Turn) => void
}

/** Which work joins the running transaction next. @param started when it began, on the monotonic clock */
type NextWork = (started: number) => PendingWork | undefined

/** Thrown inside a transaction to roll it back and split the group there. */
class WorkFailed extends Error {
  readonly index: number

  constructor(index: number, cause: unknown) {
    super('a work of the group failed', { cause })
    this.index = index
  }
}

export class TransactionWriter {
  private readonly lines: Readonly<Record<'ordinary' | 'long', Line>>

  constructor(parts: TransactionWriterParts, open: () => WritingConnection) {
    this.lines = { ordinary: new Line(parts, open(), true), long: new Line(parts, open(), false) }
  }

  write<T>(work: (tx: Tx) => Promise<T>, { isLong = false }: WriteOptions = {}): Promise<T> {
    return this.lines[isLong ? 'long' : 'ordinary'].write(work)
  }

  /** Resolves when no write is pending or running. */
  async idle(): Promise<void> {
    await Promise.all(Object.values(this.lines).map(line => line.idle()))
  }
}

class Line {
  private readonly parts: TransactionWriterParts
  private readonly connection: WritingConnection
  private readonly isShared: boolean
  private readonly waiting: PendingWork[] = []
  private lastGroupSize = 0
  private draining: Promise<void> | undefined

  constructor(parts: TransactionWriterParts, connection: WritingConnection, isShared: boolean) {
    this.parts = parts
    this.connection = connection
    this.isShared = isShared
  }

  write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const { pending, result } = pendingWork(work, this.parts.report)
    this.waiting.push(pending)
    this.draining ??= this.drain()
    return result
  }

  async idle(): Promise<void> {
    while (this.draining) await this.draining
  }

  private async drain(): Promise<void> {
    try {
      // Calls to write() in the same turn join the same group.
      await nextTurn()
      while (this.waiting.length > 0) {
        if (this.isShared && this.lastGroupSize > 1) await pauseFor(GATHER_MS)
        this.lastGroupSize = await this.commitWaiting()
      }
    } finally {
      // In the same step as the last check above, so that no work added now is left behind.
      this.draining = undefined
    }
  }

  /** @returns number of works that shared it */
  private async commitWaiting(): Promise<number> {
    // Called before the snapshot is taken. A later caller may know of commits that it does not show.
    let joining = this.isShared ? this.waiting.length : 1
    const group: PendingWork[] = []
    await this.commit(group, started => {
      if (joining === 0) return undefined
      if (group.length > 0 && this.parts.clock.monotonic() - started >= GROUP_BUDGET_MS) return undefined
      joining -= 1
      return this.waiting.shift()
    })
    return group.length
  }

  /**
   * Runs and settles them.
   *
   * @param group filled by `next` until it returns nothing
   */
  private async commit(group: PendingWork[], next: NextWork = () => undefined): Promise<void> {
    const { random } = this.parts
    for (let conflicts = 0, isRepeated = false; ;) {
      const failed = new Map<PendingWork, Error>()
      if (this.isShared) this.connection.takeTurn(conflicts > CONFLICTS_TOGETHER ? 'alone' : 'shared')
      try {
        await this.run(group, next, failed)
        settleAll(group, failed)
        return
      } catch (thrown) {
        if (thrown instanceof CommitError) {
          if (await this.isCommitted(thrown)) {
            settleAll(group, failed)
            return
          }
          failAll(group, asError(thrown.cause))
          return
        }
        if (thrown instanceof WorkFailed) {
          if (group.length > 1) return this.commitAround(group, thrown.index)
          // Another node may have stored the same key since; the work now sees it.
          if (!isViolation(thrown.cause) || isRepeated) {
            failAll(group, asError(thrown.cause))
            return
          }
          isRepeated = true
        } else if (isConflict(thrown) && conflicts < MAX_CONFLICTS) {
          conflicts += 1
          await pauseFor(retryDelayMs(RETRY, conflicts, random.fraction()))
        } else {
          failAll(group.length > 0 ? group : this.waiting.splice(0), asError(thrown))
          return
        }
      }
      // Those that joined so far run again; nobody else joins.
      next = () => undefined
    }
  }

  /** For a work that failed after changing rows. Those after it ran in an earlier attempt only. */
  private async commitAround(group: readonly PendingWork[], index: number): Promise<void> {
    if (index > 0) await this.commit(group.slice(0, index))
    await this.commit(group.slice(index, index + 1))
    if (index + 1 < group.length) await this.commit(group.slice(index + 1))
  }

  /** False also if the result is unknown: callers then retry rather than assume success. */
  private async isCommitted({ transaction }: CommitError): Promise<boolean> {
    const { reader } = this.parts
    for (let tries = 0; transaction !== undefined && tries < FATE_TRIES; tries += 1) {
      await pauseFor(FATE_PAUSE_MS)
      const fate = await sql<{ status: string | null; server_run: string | null }>`
        select pg_xact_status(${transaction.id}::xid8) as status, ${sql.raw(SERVER_RUN)} as server_run`
        .execute(reader)
        .catch(() => undefined)
      const { status, server_run: serverRun } = fate?.rows[0] ?? {}
      // The id may have been given again since.
      if (fate && serverRun !== transaction.serverRun) return false
      if (status === 'committed') return true
      if (status === 'aborted') return false
    }
    return false
  }

  private async run(group: PendingWork[], next: NextWork, failed: Map<PendingWork, Error>): Promise<void> {
    const { clock, onCommitted } = this.parts
    const begunAt = clock.monotonic()
    await this.connection.db.transaction().execute(async db => {
      const started = clock.monotonic()
      for (let index = 0; ; index += 1) {
        const work = group[index] ?? next(started)
        if (!work) break
        group[index] = work
        await this.runWork(work, index, db, failed)
      }
    })
    onCommitted?.(clock.monotonic() - begunAt, group.length)
  }

  private async runWork(
    work: PendingWork,
    index: number,
    db: Queries,
    failed: Map<PendingWork, Error>,
  ): Promise<void> {
    const writesBefore = this.connection.writes()
    try {
      await work.run(db)
    } catch (thrown) {
      if (isConflict(thrown)) throw thrown
      if (isPostgresError(thrown) || this.connection.writes() > writesBefore)
        throw new WorkFailed(index, thrown)
      failed.set(work, asError(thrown))
    }
  }
}

function settleAll(group: readonly PendingWork[], failed: ReadonlyMap<PendingWork, Error>): void {
  for (const work of group) {
    const error = failed.get(work)
    if (error) work.fail(error)
    else work.succeed()
  }
}

function failAll(group: readonly PendingWork[], error: Error): void {
  const refusal = postgresRefusal(error)
  for (const work of group) work.fail(refusal)
}
