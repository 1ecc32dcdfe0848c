/**
 * What stores and services see of the database: a reader, and `write` for everything that changes it.
 *
 * Opened by `open-sqlite.ts` (and, in tests, over PGlite as well); everything above this floor is the same on both.
 */
import type { CompiledQuery, Kysely, QueryResult } from 'kysely'
import type { Storage } from './sqlite/storage-watch.js'
import type { Tables } from './tables.js'

export type Dialect = 'sqlite' | 'postgres'

export type PrintedQuery = Pick<CompiledQuery, 'sql' | 'parameters'>

/** Runs a printed statement there and then. */
export type Run = <Row>(query: PrintedQuery) => QueryResult<Row>

/** Anything that statements can be run on; store functions take this and work inside and outside a transaction. */
export type Queries = Kysely<Tables> & {
  /**
   * The direct way of `statement.ts` to the database, past Kysely. A transaction has it only while it is open: from then on
   * Kysely is asked, which refuses what comes too late. Absent where the database has none (PostgreSQL).
   */
  readonly run?: Run | undefined
}

/** One unit of work inside a transaction. */
export interface Tx {
  readonly db: Queries
  /** Calls back once after this work is on disk; never when it failed. For waking who waits, not for more writing. */
  onCommit(callback: () => void): void
  /** Calls back once where this work fails or its commit does: for taking back what was counted in memory. */
  onRollback?(callback: () => void): void
}

export interface WriteOptions {
  /** A few ms more make no difference to the caller: the work waits for others that share its commit, unless long work waits as well. */
  readonly canWait?: boolean
  /**
   * A piece of long work, of some milliseconds, that nobody waits for: others go first, and none of them shares its commit. Between two
   * pieces whoever does such work rests.
   */
  readonly isLong?: boolean
  /** How many callers the work stands for at this moment; 1 where absent. */
  readonly callers?: () => number
}

/** How large the database is, for monitors and the operator. Looked up when asked: some microseconds, and no table is read. */
export interface DatabaseFigures {
  /** Octets of the database file. */
  readonly octets: number
  /** Of those, pages that hold nothing. */
  readonly freeOctets: number
  /** Octets of the write-ahead log that are in use. */
  readonly logOctets: number
  /** Whether what is free can be given back to the file system bit by bit. */
  readonly canShrink: boolean
}

/** For threads of this process that write by themselves, each on a connection of its own. */
export interface Lending {
  /** Path of the database file. */
  readonly file: string
  /**
   * Leaves writing to somebody else until what it returns settles, in the line of long work: for some transactions of some milliseconds
   * each, as long as nobody else wants to write. Meanwhile the event loop goes on, and only writes wait. Where the disk has no room for
   * new mail it has none for this.
   *
   * @param use rejects with what the database threw
   * @throws AppError unavailable where nothing can be stored at the moment, or what was committed is not there any more
   */
  lend(use: (turn: LentTurn) => Promise<void>): Promise<void>
}

export interface LentTurn {
  /**
   * @param end called when the turn is to end with the transaction that it is at: somebody else wants to write, or the log wants to be
   *   brought over. At once where that is so already
   */
  onWanted(end: () => void): void
  /** To be called now and then in a long turn, and at its end. @param durationsMs of each transaction since it was called last */
  committed(durationsMs: readonly number[]): void
}

export interface Database extends AsyncDisposable {
  readonly dialect: Dialect
  /** Reads see every commit that has been acknowledged, and for a moment one that is not on disk yet. Never writes. */
  readonly reader: Queries
  /**
   * For reads that can take over 10 ms: counts, deep pages, search, exports. As `reader`, but on a server they run in a thread
   * of their own, take turns, and are refused as unavailable where too many wait or one takes too long.
   */
  readonly slowReader: Queries
  /**
   * For files made while they are sent, page by page: as `slowReader`, but one statement at a time, which waits while other reads do.
   * However many exports there are, they delay no page of a list.
   */
  readonly exportReader: Queries
  /** Absent where the database is not a file of ours. */
  readonly figures?: () => DatabaseFigures
  /**
   * Gives pages that hold nothing back to the file system, from the end of the file, in a transaction of its own; absent where the
   * database cannot.
   *
   * @param pages at most
   * @returns how long everybody else waited, ms, the commit not counted
   */
  readonly shrink?: (pages: number) => Promise<number>
  /** How the disk does; asked before new mail is taken. */
  readonly storage: Storage
  /**
   * Runs the work in a transaction and resolves with its result once the commit is on disk.
   *
   * Works that wait at the same time share one commit, each in its own savepoint: one that throws is undone alone.
   * Inside it await nothing but the database, and in a long one `nextTurn`: everybody else's writes wait meanwhile.
   * @throws AppError unavailable where nothing can be stored at the moment
   */
  write<T>(work: (tx: Tx) => Promise<T>, options?: WriteOptions): Promise<T>
  /** Absent but on a server whose database is a file. */
  readonly lending?: Lending
  /** Whether another process has committed anything since this was last asked; a cheap question. */
  hasForeignWrites(): boolean
  /**
   * Grows with commits of other processes, and of threads that write by themselves, however often it is asked; where that cannot be
   * known it stays. Looked up once in a turn of the event loop: what is asked for within one comes at the same time.
   */
  foreignVersion(): number
}
