/**
 * Connections to PostgreSQL: pools by purpose, so that long reads cannot take those that writes need.
 *
 * Used by `open-postgres.ts`. No session state (SET, LISTEN, advisory session locks) on pooled connections, so that they work through
 * PgBouncer in transaction mode; prepared statements need PgBouncer 1.21 or later.
 */
import pg from 'pg'

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
  /** `postgres://...` */
  readonly url: string
  readonly size: number
  /** Shown in `pg_stat_activity`. */
  readonly name: string
  /** After this long an answer is no longer awaited, and the connection is closed: the server or the network is gone. */
  readonly answerMs: number
  /** Called with the error of an idle connection, e.g. when the server stops. */
  readonly onLost: (error: Error) => void
}

export function openPool({ url, size, name, answerMs, onLost }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    application_name: name,
    connectionTimeoutMillis: CONNECTING_MS,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: answerMs,
    keepAlive: true,
    types: TYPES,
  })
  pool.on('error', onLost)
  // One in use that is lost fails its query as well; unheard, the event would end the process.
  pool.on('connect', client => client.on('error', () => {}))
  return pool
}

/** A connection outside the pools. The caller connects and ends it. */
export function openClient(url: string, name: string): pg.Client {
  return new pg.Client({
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis: CONNECTING_MS,
    keepAlive: true,
    types: TYPES,
  })
}
