/**
 * Connections to PostgreSQL: pools by purpose, so that long reads cannot take those that writes need.
 *
 * Used by `open-postgres.ts`. No session state (SET, LISTEN, advisory session locks) on pooled connections, so that they work through
 * PgBouncer in transaction mode; prepared statements need PgBouncer 1.21 or later.
 */
import { describeError } from '../../core/errors.js'
import pg from 'pg'
import type { Servers } from './servers.js'

/** TCP keep-alive of idle connections, so that dead ones are closed. */
const KEEP_ALIVE_MS = 10_000
/** How long opening a connection may take. */
const CONNECTING_MS = 5_000
/** Idle connections are closed after this long. */
const IDLE_MS = 60_000

/** bigint columns hold times and counts, all of them safe integers. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    type === pg.types.builtins.INT8 ? Number : (pg.types.getTypeParser(type, format) as unknown),
}

export interface PoolOptions {
  readonly servers: Servers
  readonly size: number
  /** Shown in `pg_stat_activity`. */
  readonly name: string
  /** After this long an answer is no longer awaited, and the connection is closed: the server or the network is gone. */
  readonly answerMs: number
  /** Called with the error of an idle connection, e.g. when the server stops. */
  readonly onLost: (error: Error) => void
}

export function openPool({ servers, size, name, answerMs, onLost }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    ...options(name),
    Client: clientOf(servers),
    max: size,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: answerMs,
  })
  pool.on('error', onLost)
  // One in use that is lost fails its query as well; unheard, the event would end the process.
  pool.on('connect', client => client.on('error', () => {}))
  return pool
}

/** A connection outside the pools. The caller connects and ends it. */
export function openClient(servers: Servers, name: string): pg.Client {
  return new (clientOf(servers))(options(name))
}

/** Looks for the server that takes writes. @throws Error of the last one tried, if none does */
export async function findServer(servers: Servers): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const client = openClient(servers, 'postroad start')
    client.on('error', () => {})
    try {
      await client.connect()
      return
    } catch (error) {
      if (tries >= servers.count)
        throw new Error(`the database cannot be reached: ${describeError(error)}`, { cause: error })
    } finally {
      await client.end().catch(() => {})
    }
  }
}

function options(name: string): pg.ClientConfig {
  return {
    application_name: name,
    connectionTimeoutMillis: CONNECTING_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: TYPES,
  }
}

/** Connections to the server that takes writes. */
function clientOf(servers: Servers): typeof pg.Client {
  return class extends pg.Client {
    private readonly url: string

    constructor(config: pg.ClientConfig = {}) {
      const url = servers.current
      super({ ...config, connectionString: url })
      this.url = url
    }

    override connect(): Promise<pg.Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
      const connected = this.connectForWriting()
      if (!callback) return connected
      const call = callback as (error?: Error) => void
      connected.then(
        () => call(),
        (error: unknown) => call(error as Error),
      )
    }

    private async connectForWriting(): Promise<pg.Client> {
      try {
        await super.connect()
        if (servers.count > 1) await requirePrimary(this)
        return this
      } catch (error) {
        servers.failed(this.url)
        throw error
      }
    }
  }
}

/** @throws Error if the server follows another one */
async function requirePrimary(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ follows: boolean }>('select pg_is_in_recovery() as follows')
  if (rows[0]?.follows !== false) throw new StandbyError()
}

/** SQLSTATE 25006 (read_only_sql_transaction), which is what a write there would say. */
class StandbyError extends Error {
  readonly code = '25006'

  constructor() {
    super('the PostgreSQL server is a standby, and none of the hosts that takes writes can be reached')
  }
}
