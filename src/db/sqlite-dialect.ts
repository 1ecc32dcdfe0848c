/**
 * Kysely over better-sqlite3, with what Kysely's own SQLite driver lacks: transactions that take the write lock at
 * once, and statements that are prepared once and kept.
 *
 * A deferred BEGIN that reads first and writes later fails with SQLITE_BUSY_SNAPSHOT as soon as a second process (the
 * command line beside a running server) has written in between; BEGIN IMMEDIATE waits its turn instead. Preparing a
 * statement costs more than running it, so the most used ones stay prepared.
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

/** Distinct statements kept prepared. Multi-row inserts of many lengths would otherwise grow without bound. */
const KEPT_STATEMENTS = 500

export function sqliteDialect(handle: SqliteHandle): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new SqliteDriver(handle),
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** One handle is one connection: callers take turns, a transaction keeps it until it ends. */
class SqliteDriver implements Driver {
  private readonly handle: SqliteHandle
  private readonly connection: SqliteConnection
  private readonly queue: (() => void)[] = []
  private isTaken = false

  constructor(handle: SqliteHandle) {
    this.handle = handle
    this.connection = new SqliteConnection(handle)
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

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
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
  private readonly statements = new Map<string, Statement>()

  constructor(handle: SqliteHandle) {
    this.handle = handle
  }

  // Promise-based by Kysely's contract; the work itself is synchronous.
  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const statement = this.prepared(query.sql)
    if (statement.reader) return { rows: statement.all(query.parameters) as Row[] }
    const { changes, lastInsertRowid } = statement.run(query.parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    // Its own statement: a kept one is busy while it is being iterated.
    for (const row of this.handle.prepare(query.sql).iterate(query.parameters)) yield { rows: [row as Row] }
  }

  private prepared(text: string): Statement {
    const kept = this.statements.get(text)
    if (kept) {
      // Re-inserted so that the map stays in order of last use.
      this.statements.delete(text)
      this.statements.set(text, kept)
      return kept
    }
    const statement = this.handle.prepare(text)
    this.statements.set(text, statement)
    if (this.statements.size > KEPT_STATEMENTS) {
      const [oldest] = this.statements.keys()
      if (oldest !== undefined) this.statements.delete(oldest)
    }
    return statement
  }
}
