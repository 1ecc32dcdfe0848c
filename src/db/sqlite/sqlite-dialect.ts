/**
 * Kysely dialect for better-sqlite3 with immediate transactions and cached prepared statements, which Kysely's own driver lacks.
 *
 * A deferred BEGIN that reads first and writes later fails with SQLITE_BUSY_SNAPSHOT if another process (the command line) wrote in
 * between; BEGIN IMMEDIATE waits for the lock instead. Preparing a statement costs more than running it, so frequent ones stay prepared.
 *
 * A connection discards its page cache whenever another one has written. Reads therefore use the writing connection between its
 * transactions, and the reading one, which does not see the open transaction, only during one. Snapshots use a third
 * connection, because other reads on theirs would miss later commits.
 */
import type { Database as SqliteHandle, Statement } from 'better-sqlite3'
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely'
import { pauseFor, systemClock, type Clock } from '../../world/time/clock.js'
import type { PrintedQuery, Run } from '../database.js'
import { sqliteCode } from '../faults/storage-fault.js'

/** Prepared statements kept; multi-row inserts of many lengths would otherwise grow without bound. */
const KEPT_STATEMENTS = 500

/** How long to wait for the write lock while another process holds it; transactions of the command line take a few ms. */
const LOCK_PATIENCE_MS = 5_000
/** Shorter than the pause that a long import makes between transactions. */
const MAX_PAUSE_MS = 5

export interface DirectDialect {
  readonly dialect: Dialect
  readonly run: Run
}

export function sqliteDialect(handle: SqliteHandle, clock: Clock = systemClock): DirectDialect {
  const statements = new Statements(handle)
  return dialectOf(handle, clock, query => statements.run(query))
}

export interface ReadingHandles {
  /** Its page cache is used while it has no open transaction. */
  readonly writer: SqliteHandle
  /** Read-only, on the same file, as is the next one. */
  readonly reader: SqliteHandle
  readonly snapshots: SqliteHandle
}

/** For reading in the process of a writer. A transaction is a snapshot. */
export function sqliteReadingDialect({ writer, reader, snapshots }: ReadingHandles): DirectDialect {
  const [own, writers] = [new Statements(reader), new Statements(writer)]
  const run: Run = query => (writer.inTransaction ? own.run(query) : writers.read(query))
  return { dialect: dialectWith(new ReadingDriver(reader, snapshots, run)), run }
}

function dialectOf(handle: SqliteHandle, clock: Clock, run: Run): DirectDialect {
  return { dialect: dialectWith(new SqliteDriver(handle, clock, run)), run }
}

function dialectWith(driver: Driver): Dialect {
  return {
    createAdapter: () => new OwnAdapter(),
    createDriver: () => driver,
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

export class OwnAdapter extends SqliteAdapter {
  /** In SQLite, DDL is transactional; Kysely's own adapter denies it. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }

  /** The drivers queue callers themselves; with Kysely's lock, long reads would run one at a time. */
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** One handle is one connection: callers take turns, a transaction holds it until it ends. */
class SqliteDriver implements Driver {
  private readonly handle: SqliteHandle
  private readonly clock: Clock
  private readonly run: Run
  private readonly connection: SqliteConnection
  private readonly queue: (() => void)[] = []
  private isTaken = false

  constructor(handle: SqliteHandle, clock: Clock, run: Run) {
    this.handle = handle
    this.clock = clock
    this.run = run
    this.connection = new SqliteConnection(handle, run)
  }

  async init(): Promise<void> {
    // The handle is already open.
  }

  acquireConnection(): Promise<DatabaseConnection> {
    if (!this.isTaken) {
      this.isTaken = true
      return Promise.resolve(this.connection)
    }
    return new Promise(resolve => this.queue.push(() => resolve(this.connection)))
  }

  async beginTransaction(): Promise<void> {
    await takeWriteLock(() => this.run(CompiledQuery.raw('begin immediate')), this.clock)
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite has already rolled back after a full disk or an I/O error.
    if (this.handle.inTransaction) await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async releaseConnection(): Promise<void> {
    const next = this.queue.shift()
    if (next) next()
    else this.isTaken = false
  }

  async destroy(): Promise<void> {
    this.handle.close()
  }
}

/** Statements run at once; snapshots take turns on their connection. */
class ReadingDriver implements Driver {
  private readonly reader: SqliteHandle
  private readonly snapshots: SqliteHandle
  private readonly run: Run
  private readonly statements: Statements
  private lastSnapshot: Promise<void> = Promise.resolve()

  constructor(reader: SqliteHandle, snapshots: SqliteHandle, run: Run) {
    this.reader = reader
    this.snapshots = snapshots
    this.run = run
    this.statements = new Statements(snapshots)
  }

  async init(): Promise<void> {
    // The handles are already open.
  }

  async acquireConnection(): Promise<ReadingConnection> {
    return new ReadingConnection(this.run)
  }

  async beginTransaction(connection: ReadingConnection): Promise<void> {
    const before = this.lastSnapshot
    this.lastSnapshot = new Promise(resolve => (connection.leave = resolve))
    await before
    this.statements.run(CompiledQuery.raw('begin'))
    connection.run = query => this.statements.run(query)
  }

  async commitTransaction(): Promise<void> {
    // SQLite has already rolled back after an I/O error.
    if (this.snapshots.inTransaction) this.statements.run(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(): Promise<void> {
    await this.commitTransaction()
  }

  async releaseConnection(connection: ReadingConnection): Promise<void> {
    connection.leave?.()
  }

  async destroy(): Promise<void> {
    this.reader.close()
    this.snapshots.close()
  }
}

class ReadingConnection implements DatabaseConnection {
  run: Run
  /** Lets the next snapshot begin. */
  leave: (() => void) | undefined

  constructor(run: Run) {
    this.run = run
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return this.run(query)
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('no store streams')
  }
}

class SqliteConnection implements DatabaseConnection {
  private readonly handle: SqliteHandle
  private readonly run: Run

  constructor(handle: SqliteHandle, run: Run) {
    this.handle = handle
    this.run = run
  }

  // Promise-based by Kysely's contract; the work itself is synchronous.
  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return this.run(query)
  }

  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    // Not cached: a statement is busy while it is being iterated.
    for (const row of this.handle.prepare(query.sql).iterate(query.parameters)) yield { rows: [row as Row] }
  }
}

interface Prepared {
  readonly statement: Statement
  /** Column names of its rows. */
  columns: readonly string[]
}

/** Runs statements on one handle, with a cache of prepared ones. */
class Statements {
  private readonly handle: SqliteHandle
  private readonly kept = new Map<string, Prepared>()

  constructor(handle: SqliteHandle) {
    this.handle = handle
  }

  run<Row>({ sql, parameters }: PrintedQuery): QueryResult<Row> {
    return runPrepared(this.prepared(sql), parameters)
  }

  /** @throws Error for a statement that writes */
  read<Row>({ sql, parameters }: PrintedQuery): QueryResult<Row> {
    const prepared = this.prepared(sql)
    if (!prepared.statement.readonly) throw new Error('attempt to write a readonly database')
    return runPrepared(prepared, parameters)
  }
  private prepared(text: string): Prepared {
    const kept = this.kept.get(text)
    if (kept) {
      // Re-inserted to keep the map in order of last use.
      this.kept.delete(text)
      this.kept.set(text, kept)
      return kept
    }
    const prepared = prepare(this.handle, text)
    this.kept.set(text, prepared)
    if (this.kept.size > KEPT_STATEMENTS) {
      const [oldest] = this.kept.keys()
      if (oldest !== undefined) this.kept.delete(oldest)
    }
    return prepared
  }
}

function runPrepared<Row>(prepared: Prepared, parameters: readonly unknown[]): QueryResult<Row> {
  const { statement } = prepared
  if (statement.reader) return { rows: toRows(prepared, statement.all(parameters) as unknown[][]) as Row[] }
  const { changes, lastInsertRowid } = statement.run(parameters)
  return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
}

function prepare(handle: SqliteHandle, text: string): Prepared {
  const statement = handle.prepare(text)
  // As arrays: in SQLite's binding, naming the columns of each row takes longer than reading it.
  return statement.reader
    ? { statement: statement.raw(true), columns: columnsOf(statement) }
    : { statement, columns: [] }
}

function columnsOf(statement: Statement): string[] {
  return statement.columns().map(({ name }) => name)
}

function toRows(prepared: Prepared, rows: readonly (readonly unknown[])[]): Record<string, unknown>[] {
  // `select *` after a schema change.
  if (rows[0] && rows[0].length !== prepared.columns.length) prepared.columns = columnsOf(prepared.statement)
  return rows.map(values => namedRow(prepared.columns, values))
}

/** In SQLite's binding, naming the columns of each row takes longer than reading it. */
export function namedRow(columns: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let at = 0; at < columns.length; at += 1) row[columns[at] ?? ''] = values[at]
  return row
}

/**
 * Waits for the write lock by polling, since SQLite would block the whole process.
 *
 * @param begin throws SQLITE_BUSY without waiting long if the lock is taken
 */
async function takeWriteLock(begin: () => void, clock: Clock): Promise<void> {
  const end = clock.monotonic() + LOCK_PATIENCE_MS
  for (let pause = 1; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    try {
      begin()
      return
    } catch (error) {
      if (!sqliteCode(error)?.startsWith('SQLITE_BUSY') || clock.monotonic() >= end) throw error
    }
    await pauseFor(pause)
  }
}
