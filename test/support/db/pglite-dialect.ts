/**
 * Kysely over PGlite, PostgreSQL inside this process, so that every store's tests run on both databases.
 *
 * Used by `postgres.ts` and `write-databases.ts`. One instance is one connection: callers take turns, and a transaction keeps
 * it until it ends. Fails as PostgreSQL does; the errors come through as they are.
 */
import { PGlite, types } from '@electric-sql/pglite'
import {
  CompiledQuery,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely'

/**
 * Bigint columns hold moments and counts, all of them safe integers.
 *
 * @param dataFolder as PGlite dumps it; a new one where absent
 */
export function openPglite(dataFolder?: Buffer<ArrayBuffer>): PGlite {
  return new PGlite({
    parsers: { [types.INT8]: value => Number(value) },
    ...(dataFolder ? { loadDataDir: new Blob([dataFolder]) } : {}),
  })
}

export function pgliteDialect(postgres: PGlite): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PgliteDriver(postgres),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

class PgliteDriver implements Driver {
  private readonly connection: PgliteConnection
  private readonly queue: (() => void)[] = []
  private isTaken = false

  constructor(postgres: PGlite) {
    this.connection = new PgliteConnection(postgres)
  }

  async init(): Promise<void> {
    // The opener of the instance waits for it.
  }

  acquireConnection(): Promise<DatabaseConnection> {
    if (!this.isTaken) {
      this.isTaken = true
      return Promise.resolve(this.connection)
    }
    return new Promise(resolve => this.queue.push(() => resolve(this.connection)))
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async releaseConnection(): Promise<void> {
    const next = this.queue.shift()
    if (next) next()
    else this.isTaken = false
  }

  async destroy(): Promise<void> {
    // The instance outlives this database: the next test gets a fresh schema in it.
  }
}

class PgliteConnection implements DatabaseConnection {
  private readonly postgres: PGlite

  constructor(postgres: PGlite) {
    this.postgres = postgres
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const { rows, affectedRows } = await this.postgres.query<Row>(query.sql, [...query.parameters])
    return { rows, ...(affectedRows === undefined ? {} : { numAffectedRows: BigInt(affectedRows) }) }
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('no store streams')
  }
}
