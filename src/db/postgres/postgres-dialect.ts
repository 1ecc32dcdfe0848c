/**
 * Kysely dialect over a pool of `pg`, with named prepared statements, which Kysely's own driver lacks: parsing and planning a statement
 * costs the server more than running it.
 */
import type pg from 'pg'
import type { CompiledQuery } from 'kysely'
import {
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely'
import { asError } from '../pending-work.js'
import { RemovedError } from '../removed-error.js'
import { isLost, postgresRefusal } from '../faults/postgres-fault.js'

/** Prepared statements a connection keeps; others are parsed each time. */
const MAX_PREPARED = 500

/** Statements that change no rows. */
const READS_ONLY = /^\s*\(?select\b/i

/**
 * SQL that differs after a crash of the server and on a server that took its place, which throw their statistics away: from then on ids of
 * transactions that left no trace are given again.
 */
export const SERVER_RUN = 'pg_stat_get_bgwriter_stat_reset_time()::text'

/** Which transaction, so that it can be looked up when its connection is lost. */
export interface TransactionId {
  /** As `pg_xact_status` takes it. */
  readonly id: string
  readonly serverRun: string
}

/** All statements of a reader's transaction see the same moment. */
export const BEGIN_SNAPSHOT = 'begin isolation level repeatable read read only'

/** How transactions begin, and what is reported of them. */
export interface Framing {
  /**
   * One or more statements, sent in one round trip. The values that the last one returns are the transaction's id and the server's run
   * (`SERVER_RUN`); without them, the transaction is refused.
   */
  readonly begin?: () => string
  /** Transactions are snapshots. Faults that the values did not cause become `unavailable`; a writer has to judge them itself. */
  readonly isReader?: boolean
  /** Called for each statement that may change rows. */
  readonly onWrite?: (sql: string) => void
  /** Called after each commit, and where it is unknown whether it was made. */
  readonly onCommit?: () => void
}

export function postgresDialect(pool: pg.Pool, framing: Framing = {}): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PooledDriver(pool, framing),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

class PooledDriver implements Driver {
  private readonly pool: pg.Pool
  private readonly framing: Framing

  constructor(pool: pg.Pool, framing: Framing) {
    this.pool = pool
    this.framing = framing
  }

  async init(): Promise<void> {
    // The pool connects when it has to.
  }

  async acquireConnection(): Promise<PooledConnection> {
    try {
      return new PooledConnection(await this.pool.connect(), this.framing)
    } catch (error) {
      throw this.framing.isReader ? postgresRefusal(asError(error)) : error
    }
  }

  async beginTransaction(connection: PooledConnection): Promise<void> {
    const begin = this.framing.begin?.()
    await connection.begin(begin ?? (this.framing.isReader ? BEGIN_SNAPSHOT : 'begin'))
    if (begin !== undefined && connection.transaction === undefined) throw new RemovedError()
  }

  async commitTransaction(connection: PooledConnection): Promise<void> {
    await connection.commit()
  }

  async rollbackTransaction(connection: PooledConnection): Promise<void> {
    await connection.rollBack()
  }

  async releaseConnection(connection: PooledConnection): Promise<void> {
    connection.release()
  }

  async destroy(): Promise<void> {
    await this.pool.end()
  }
}

/** Names of the statements each connection has prepared. */
const prepared = new WeakMap<pg.PoolClient, Map<string, string>>()

export class PooledConnection implements DatabaseConnection {
  private readonly client: pg.PoolClient
  private readonly names: Map<string, string>
  private readonly framing: Framing
  private isBroken = false
  /** Of the open transaction, if its `begin` returned it. */
  transaction: TransactionId | undefined

  constructor(client: pg.PoolClient, framing: Framing = {}) {
    this.client = client
    this.framing = framing
    const names = prepared.get(client) ?? new Map<string, string>()
    prepared.set(client, names)
    this.names = names
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const name = this.nameOf(sql)
    if (this.framing.onWrite && !READS_ONLY.test(sql)) this.framing.onWrite(sql)
    const { command, rowCount, rows } = await this.send(() =>
      this.client.query<Row & pg.QueryResultRow>({
        ...(name === undefined ? {} : { name }),
        text: sql,
        values: parameters as unknown[],
      }),
    )
    return command === 'SELECT' ? { rows } : { rows, numAffectedRows: BigInt(rowCount ?? 0) }
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('no store streams')
  }

  /** Several statements at once; the last one's values, if any, identify the transaction. */
  async begin(text: string): Promise<void> {
    const results: pg.QueryResult | pg.QueryResult[] = await this.send(() => this.client.query(text))
    const row = [results].flat().at(-1)?.rows[0] as Record<string, unknown> | undefined
    const [id, serverRun] = Object.values(row ?? {})
    this.transaction = typeof id === 'string' ? { id, serverRun: String(serverRun) } : undefined
  }

  /** @throws CommitError if it is unknown whether the transaction was committed */
  async commit(): Promise<void> {
    let result: pg.QueryResult
    try {
      result = await this.send(() => this.client.query('commit'))
    } catch (error) {
      this.framing.onCommit?.()
      throw isLost(error) ? new CommitError(this.transaction, error) : error
    }
    // The server answers a commit of a failed transaction with a rollback, and no error.
    if (result.command === 'ROLLBACK') throw new Error('the transaction had failed before its commit')
    this.framing.onCommit?.()
  }

  async rollBack(): Promise<void> {
    // A lost connection has rolled back; the first error matters more than this one.
    if (!this.isBroken) await this.send(() => this.client.query('rollback')).catch(() => {})
  }

  release(): void {
    this.client.release(this.isBroken)
  }

  private async send<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query()
    } catch (error) {
      if (isLost(error)) this.isBroken = true
      throw this.framing.isReader ? postgresRefusal(asError(error)) : error
    }
  }

  private nameOf(sql: string): string | undefined {
    const known = this.names.get(sql)
    if (known !== undefined) return known
    if (this.names.size >= MAX_PREPARED) return undefined
    const name = `p${this.names.size + 1}`
    this.names.set(sql, name)
    return name
  }
}

/** The connection was lost while the server committed. */
export class CommitError extends Error {
  override readonly name = 'CommitError'
  readonly transaction: TransactionId | undefined

  constructor(transaction: TransactionId | undefined, cause: unknown) {
    super('the connection to the database was lost during a commit', { cause })
    this.transaction = transaction
  }
}
