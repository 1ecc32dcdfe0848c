/**
 * Kysely dialect for reads that can take long (counts, deep pages, search, exports): bounded in time by the server, in number by their pool,
 * and in how many may wait. Workspaces share both fairly.
 *
 * Used through `Database.slowReader` and `exportReader`. Throws `unavailable` if too many wait or a statement takes too long.
 */
import type pg from 'pg'
import {
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type CompiledQuery,
  type Dialect,
  type QueryResult,
} from 'kysely'
import { FairGate } from '../../core/fair-shares.js'
import { currentHolder } from '../../core/holder.js'
import { SlowDriver, type SnapshotConnection } from '../slow-driver.js'
import { MAX_WAITING, RUNNING_LIMIT_MS, tooBusy, tooLong } from '../slow-read-limits.js'
import { BEGIN_SNAPSHOT, PooledConnection } from './postgres-dialect.js'
import { isTimeout, postgresRefusal } from '../faults/postgres-fault.js'
import { asError } from '../pending-work.js'

const BEGIN = `${BEGIN_SNAPSHOT}; set local statement_timeout = ${RUNNING_LIMIT_MS}`

export function slowPostgresDialect(pool: pg.Pool): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new SlowPostgresDriver(pool),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

class SlowPostgresDriver extends SlowDriver<SlowConnection> {
  private readonly pool: pg.Pool
  private readonly gate: FairGate

  constructor(pool: pg.Pool) {
    super()
    this.pool = pool
    this.gate = new FairGate(pool.options.max, MAX_WAITING, tooBusy)
  }

  async acquireConnection(): Promise<SlowConnection> {
    return new SlowConnection(this.pool, this.gate)
  }

  async destroy(): Promise<void> {
    await this.pool.end()
  }
}

/** Takes a connection of the pool for each statement, or for all of a snapshot. */
class SlowConnection implements SnapshotConnection {
  private readonly pool: pg.Pool
  private readonly gate: FairGate
  private snapshot: Held | undefined

  constructor(pool: pg.Pool, gate: FairGate) {
    this.pool = pool
    this.gate = gate
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const { snapshot } = this
    if (snapshot) return judged(() => snapshot.connection.executeQuery<Row>(query))
    return judged(async () => {
      const held = await this.begin()
      try {
        return await held.connection.executeQuery<Row>(query)
      } finally {
        await end(held)
      }
    })
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('no store streams')
  }

  async beginSnapshot(): Promise<void> {
    this.snapshot = await judged(() => this.begin())
  }

  async endSnapshot(): Promise<void> {
    const { snapshot } = this
    this.snapshot = undefined
    if (snapshot) await end(snapshot)
  }

  private async begin(): Promise<Held> {
    const leave = await this.gate.enter(currentHolder())
    let connection: PooledConnection
    try {
      connection = new PooledConnection(await this.pool.connect())
    } catch (error) {
      leave()
      throw error
    }
    try {
      await connection.begin(BEGIN)
      return { connection, leave }
    } catch (error) {
      await end({ connection, leave })
      throw error
    }
  }
}

interface Held {
  readonly connection: PooledConnection
  /** Gives its place to the next one. */
  readonly leave: () => void
}

/** Nothing was written, so that a rollback ends it as well as a commit, also after an error. */
async function end({ connection, leave }: Held): Promise<void> {
  try {
    await connection.rollBack()
    connection.release()
  } finally {
    leave()
  }
}

async function judged<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw isTimeout(error) ? tooLong() : postgresRefusal(asError(error))
  }
}
