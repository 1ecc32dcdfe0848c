/**
 * The database as stores and services see it: readers, `write` for all changes, and `changes` for what others wrote.
 *
 * Implemented by `sqlite/open-sqlite.ts` and, in tests, over PGlite. What only a database file has is in `file`.
 */
import { PostgresAdapter, type CompiledQuery, type Kysely, type QueryResult } from 'kysely'
import type { Changes, Topic } from './changes.js'
import type { Tables } from './tables.js'

export type Dialect = 'sqlite' | 'postgres'

/** For the few places where SQL must differ. */
export function dialectOf(db: Queries): Dialect {
  return db.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite'
}

export type PrintedQuery = Pick<CompiledQuery, 'sql' | 'parameters'>

/** Runs a compiled statement synchronously. */
export type Run = <Row>(query: PrintedQuery) => QueryResult<Row>

/** Anything that can run statements; store functions take this and work inside and outside a transaction. */
export type Queries = Kysely<Tables> & {
  /**
   * Direct path of `statement.ts` to the database, bypassing Kysely. A transaction has it only while open; after that Kysely rejects late
   * statements. Absent if the database has none (PostgreSQL).
   */
  readonly run?: Run | undefined
}

/** One unit of work inside a transaction. */
export interface Tx {
  readonly db: Queries
  /** Reports a change to caches and workers, here and in other processes, once it is committed. */
  changed(topic: Topic): void
  /** Called once when this work is durable; never if it failed. For waking consumers, not for further writes. */
  onCommit(callback: () => void): void
  /** Called once if this work or its commit fails. For undoing in-memory counts. */
  onRollback?(callback: () => void): void
}

export interface WriteOptions {
  /** One step of long background work, a few milliseconds. Other writes go first and never share its commit. Pause between steps. */
  readonly isLong?: boolean
}

export interface Database extends AsyncDisposable {
  readonly dialect: Dialect
  /** Sees every acknowledged commit, and briefly also commits not yet durable. Never writes. Its transactions are snapshots (`snapshot.ts`). */
  readonly reader: Queries
  /**
   * For reads that can take over 10 ms: counts, deep pages, search, exports. Like `reader`, but on a server they are queued to threads, and
   * fail with `unavailable` if too many wait or one takes too long.
   */
  readonly slowReader: Queries
  /**
   * For exports streamed page by page: like `slowReader`, but one statement at a time and at lower priority, so that exports never delay
   * lists.
   */
  readonly exportReader: Queries
  readonly storage: Storage
  readonly changes: Changes
  /** Present if the database is a local file. */
  readonly file?: DatabaseFile
  /**
   * Runs the work in a transaction and resolves with its result once the commit is durable.
   *
   * Concurrent calls share one commit, each and one that throws is rolled back alone. A work may run again after a rollback, so it
   * changes no memory itself. Await only database calls inside, and `nextTurn` in a long one: other writes wait meanwhile.
   * @throws AppError unavailable if nothing can be stored now
   */
  write<T>(work: (tx: Tx) => Promise<T>, options?: WriteOptions): Promise<T>
  /**
   * Present if several nodes may share the database. Each statement commits by itself (READ COMMITTED), so an upsert of a row that another
   * node is changing waits, and then sees its change; for figures that nodes share. Not refused after a removal as `write` is.
   */
  readonly shared?: Queries
  /**
   * Present if several nodes may share the database: from now on writes fail with `unavailable` unless this node still has its row in
   * `nodes`, so that one that was removed changes nothing more.
   */
  actAs?(nodeId: string): void
  /** Present if several nodes may share the database: announces to the other nodes that rows of the topic changed. Call after the commit. */
  announce?(topic: Topic): void
  /** Whether a failed read or write may succeed if repeated: database locked or unreachable, disk full, deadlock. */
  isTransient(error: unknown): boolean
}

/** Called after each commit. @param durationMs from BEGIN until durable @param works that shared it */
export type OnCommitted = (durationMs: number, works: number) => void

/** Read in microseconds; scans no table. */
export interface FileSize {
  /** Octets of the database file. */
  readonly octets: number
  /** Octets in unused pages. */
  readonly freeOctets: number
  /** Octets used in the write-ahead log. */
  readonly logOctets: number
  /** Whether free pages can be returned to the file system incrementally. */
  readonly canShrink: boolean
}

/** Maintenance of a database file, for metrics and the operator. */
export interface DatabaseFile {
  size(): FileSize
  /**
   * Returns free pages at the end of the file to the file system, in its own transaction.
   *
   * @param pages maximum
   * @returns how long others were blocked, ms, excluding the commit
   */
  shrink(pages: number): Promise<number>
}

/** Whether the database can store more. */
export interface Storage {
  /** Call before accepting new mail. @throws AppError unavailable */
  requireRoom(): void
  /** The most severe current fault. */
  readonly fault: StorageFault | undefined
}

/** Why the database is impaired, for `/health`. */
export interface StorageFault {
  /** Stable, for programs. */
  readonly code: 'database_gone' | 'database_failing' | 'database_busy' | 'disk_low'
  /** Whether accepted mail is no longer processed. */
  readonly isFatal: boolean
  /** One sentence, for the operator. */
  readonly reason: string
}

/** For a database that is not monitored. */
export const UNWATCHED: Storage = { requireRoom() {}, fault: undefined }
