/**
 * Kysely dialect for reads that can take long (counts, deep pages, search, exports): bounded in time by the server, in number by their pool,
 * and in how many may wait.
 *
 * Used through `Database.slowReader` and `exportReader`. Throws `unavailable` if too many wait or a statement takes too long.
 */
import type pg from 'pg'
import {
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type QueryResult,
} from 'kysely'
import { MAX_WAITING, RUNNING_LIMIT_MS, tooBusy, tooLong } from '../slow-read-limits.js'
import { PooledConnection } from './postgres-dialect.js'
import { isTimeout, postgresRefusal } from './postgres-fault.js'
import { asError } from '../pending-work.js'

const BEGIN = `begin read only; set local statement_timeout = ${RUNNING_LIMIT_MS}`

export function slowPostgresDialect(pool: pg.Pool): Dialect {
  const connection = new SlowConnection(pool)
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => ({
      init: async () => {},
      acquireConnection: async () => connection,
      beginTransaction: rejectTransactions,
      commitTransaction: rejectTransactions,
      rollbackTransaction: rejectTransactions,
      releaseConnection: async () => {},
      destroy: () => pool.end(),
    }),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

async function rejectTransactions(): Promise<void> {
  throw new Error('slow reads have no transactions')
}

/** Takes a connection of the pool for each statement. */
class SlowConnection implements DatabaseConnection {
  private readonly pool: pg.Pool

  constructor(pool: pg.Pool) {
    this.pool = pool
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.pool.waitingCount >= MAX_WAITING) throw tooBusy()
    try {
      return await this.read(query)
    } catch (error) {
      throw isTimeout(error) ? tooLong() : postgresRefusal(asError(error))
    }
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('no store streams')
  }

  private async read<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const connection = new PooledConnection(await this.pool.connect())
    try {
      await connection.begin(BEGIN)
      const result = await connection.executeQuery<Row>(query)
      await connection.commit()
      return result
    } catch (error) {
      await connection.rollBack()
      throw error
    } finally {
      connection.release()
    }
  }
}
