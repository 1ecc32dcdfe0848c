/**
 * Kysely over better-sqlite3, with what Kysely's own SQLite driver lacks: transactions that take the write lock at
 * once, and statements that are prepared once and kept.
 *
 * A deferred BEGIN that reads first and writes later fails with SQLITE_BUSY_SNAPSHOT as soon as a second process (the
 * command line beside a running server) has written in between; BEGIN IMMEDIATE waits its turn instead. Preparing a
 * statement costs more than running it, so the most used ones stay prepared.
 *
 * A connection throws away all pages it knows whenever another one has written. So what only reads goes through the writing
 * connection as well, between its transactions, and takes its own, which sees no open transaction, only during one.
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
import { systemClock, type Clock } from '../../world/time/clock.js'
import { slowReadingDriver, type ReadingLine, type SlowReader } from '../threads/slow-reader.js'
import type { PrintedQuery, Run } from '../database.js'
import { namedRow } from './named-row.js'
import { takeWriteLock } from './write-lock.js'

/** Distinct statements kept prepared. Multi-row inserts of many lengths would otherwise grow without bound. */
const KEPT_STATEMENTS = 500

export interface DirectDialect {
  readonly dialect: Dialect
  /** What the dialect itself runs statements with. */
  readonly run: Run
}

export function sqliteDialect(handle: SqliteHandle, clock: Clock = systemClock): DirectDialect {
  const statements = new Statements(handle)
  return dialectOf(handle, clock, query => statements.run(query))
}

/**
 * For reading, beside a writer in the same process.
 *
 * @param handle read-only, on the same file @param writer whose pages are used while no transaction is open on it
 */
export function sqliteReadingDialect(
  handle: SqliteHandle,
  writer: SqliteHandle,
  clock: Clock = systemClock,
): DirectDialect {
  const [own, writers] = [new Statements(handle), new Statements(writer)]
  return dialectOf(handle, clock, query => (writer.inTransaction ? own.run(query) : writers.read(query)))
}

/** For reads in a thread of their own; they never come to a handle here. */
export function slowReadingDialect(reader: SlowReader, line: ReadingLine): Dialect {
  return {
    createAdapter: () => new AtomicAdapter(),
    createDriver: () => slowReadingDriver(reader, line),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

function dialectOf(handle: SqliteHandle, clock: Clock, run: Run): DirectDialect {
  const dialect: Dialect = {
    createAdapter: () => new AtomicAdapter(),
    createDriver: () => new SqliteDriver(handle, clock, run),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
  return { dialect, run }
}

/** In SQLite a change of the schema is part of its transaction like any other; Kysely's own adapter denies it. */
class AtomicAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** One handle is one connection: callers take turns, a transaction keeps it until it ends. */
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
    // The handle is open already.
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
    // SQLite itself has already rolled back after a full disk or an I/O error.
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
    // Its own statement: a kept one is busy while it is being iterated.
    for (const row of this.handle.prepare(query.sql).iterate(query.parameters)) yield { rows: [row as Row] }
  }
}

interface Prepared {
  readonly statement: Statement
  /** Of the rows it returns. */
  columns: readonly string[]
}

/** What runs on one handle, each statement prepared once. */
class Statements {
  private readonly handle: SqliteHandle
  private readonly kept = new Map<string, Prepared>()

  constructor(handle: SqliteHandle) {
    this.handle = handle
  }

  run<Row>({ sql, parameters }: PrintedQuery): QueryResult<Row> {
    return runPrepared(this.prepared(sql), parameters)
  }

  /** @throws Error for a statement that would write */
  read<Row>({ sql, parameters }: PrintedQuery): QueryResult<Row> {
    const prepared = this.prepared(sql)
    if (!prepared.statement.readonly) throw new Error('attempt to write a readonly database')
    return runPrepared(prepared, parameters)
  }
  private prepared(text: string): Prepared {
    const kept = this.kept.get(text)
    if (kept) {
      // Re-inserted so that the map stays in order of last use.
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
  // As arrays: SQLite's binding takes longer to name the columns of a row, each row anew, than to read it.
  return statement.reader
    ? { statement: statement.raw(true), columns: columnsOf(statement) }
    : { statement, columns: [] }
}

function columnsOf(statement: Statement): string[] {
  return statement.columns().map(({ name }) => name)
}

function toRows(prepared: Prepared, rows: readonly (readonly unknown[])[]): Record<string, unknown>[] {
  // `select *` after a change of the schema.
  if (rows[0] && rows[0].length !== prepared.columns.length) prepared.columns = columnsOf(prepared.statement)
  return rows.map(values => namedRow(prepared.columns, values))
}
