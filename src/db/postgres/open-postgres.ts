/**
 * Opens a database on a PostgreSQL server, which several nodes may share.
 *
 * Used by the composition root and by commands. Migrates the schema first, one node at a time (Kysely's migrator takes an advisory lock).
 * Throws an Error an operator can act on: unreachable, no access, too old a server, unusable schema.
 */
import { Kysely, sql } from 'kysely'
import { describeError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { ReportedChanges, type Topic } from '../changes.js'
import { UNWATCHED, type Database, type OnCommitted } from '../database.js'
import { isEmpty, migrateToLatest, SchemaError, type UpgradeSteps } from '../migrate.js'
import { MIGRATIONS } from '../migrations.js'
import type { Services } from '../services.js'
import type { Tables } from '../tables.js'
import { topicsOfStatement } from '../written-topics.js'
import { isTransient } from '../faults/transient-error.js'
import { findServer, openPool } from './connections.js'
import { DatabaseTime } from './database-time.js'
import { ForeignChanges } from './foreign-changes.js'
import { Servers } from './servers.js'
import { postgresDialect, SERVER_RUN } from './postgres-dialect.js'
import { slowPostgresDialect } from './slow-reads.js'
import { TransactionWriter, type Turn, type WritingConnection } from './transaction-writer.js'

/** The version of Debian 12, which tests run on. */
const OLDEST_SERVER = 150_000

/**
 * Server-side limits of a write: its statements, its waits for locks, and its pauses. Other nodes wait for the locks of one that was stopped or
 * cut off in the middle of a write.
 */
const STATEMENT_MS = 30_000
const LOCK_MS = 5_000
const IDLE_MS = 4_000
/** Counts of whole tables. */
const COUNTING_MS = 10 * 60_000
const BEGIN = `begin isolation level repeatable read; set local lock_timeout = ${LOCK_MS}`
/** Of the transaction, with the statement that identifies it: a statement for each would cost the server more than most that follow. */
const SETTINGS = [
  `set_config('statement_timeout', '${STATEMENT_MS}', true)`,
  `set_config('idle_in_transaction_session_timeout', '${IDLE_MS}', true)`,
  // Statements that write use an index. The planner would scan a nearly empty queue, even if it is full of deleted rows that a held snapshot keeps.
  "set_config('enable_seqscan', 'off', true)",
  // A table without an index for it, such as `nodes`, now has a cost so high that PostgreSQL would compile the statement: 70 ms each time.
  "set_config('jit', 'off', true)",
].join()
/**
 * Held until the commit, shared by ordinary writes; one that met conflicts takes it alone. A table that nothing else locks. Sent before the
 * first SELECT, which takes the transaction's snapshot: LOCK TABLE takes none, so a transaction that waited for it sees what the others committed.
 */
const TURNS = {
  shared: 'lock table schema_migrations_lock in row exclusive mode',
  alone: 'lock table schema_migrations_lock in exclusive mode',
}
/** Assigned at once, so that a commit whose answer is lost can be looked up. */
const TRANSACTION_ID = `select pg_current_xact_id()::text as id, ${SERVER_RUN} as server_run, ${SETTINGS}`
/** Its row can only be removed before or after the transaction. */
const transactionOf = (nodeId: string) =>
  `${TRANSACTION_ID} from (select 1 from nodes where id = '${nodeId}' for key share) as node`

/** Connections of one node. */
const POOLS = { writes: 2, reads: 6, slow: 4, exports: 1 }

export interface PostgresOptions extends Pick<Services, 'clock' | 'random' | 'log'> {
  /** `postgres://...`, with one or several hosts. */
  readonly url: string
  /** For LISTEN; by default `url`. Must not lead through PgBouncer in transaction mode. */
  readonly listenUrl?: string | undefined
  /** False: an empty database is rejected. */
  readonly mayCreate?: boolean
  /** False for commands: an older schema is rejected instead of migrated. */
  readonly mayMigrate?: boolean
  readonly upgradeSteps?: UpgradeSteps | undefined
  /** For a server: learns what other nodes changed. */
  readonly isServing?: boolean
  readonly onCommitted?: OnCommitted | undefined
}

export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const {
    url,
    listenUrl,
    clock,
    random,
    log,
    mayCreate = true,
    mayMigrate = true,
    upgradeSteps,
    isServing = false,
    onCommitted,
  } = options
  const servers = new Servers(url)
  const onLost = (error: Error) => log.debug('database connection lost', { error: describeError(error) })
  const pool = (size: number, purpose: string, answerMs = STATEMENT_MS + LOCK_MS) =>
    openPool({ servers, size, name: `postroad ${purpose}`, answerMs, onLost })
  const pools = {
    writes: pool(POOLS.writes, 'write'),
    reads: pool(POOLS.reads, 'read'),
    slow: pool(POOLS.slow, 'slow read'),
    exports: pool(POOLS.exports, 'export'),
  }
  const endPools = async () => {
    await Promise.all(Object.values(pools).map(one => one.end()))
  }
  const reader = new Kysely<Tables>({ dialect: postgresDialect(pools.reads, { isReader: true }) })
  const time = new DatabaseTime({ clock, log, reader })
  try {
    await findServer(servers)
    await requireServer(reader)
    await time.check()
    if (!mayCreate && (await isEmpty(reader, 'postgres')))
      throw new SchemaError('the PostgreSQL database is empty', 'run `postroad init` first')
    await migrateToLatest(
      // Index builds and data migrations may take long.
      new Kysely<Tables>({ dialect: postgresDialect(pools.writes) }),
      'postgres',
      mayMigrate,
      MIGRATIONS,
      upgradeSteps,
    )
  } catch (error) {
    await endPools()
    throw error
  }
  const changes = new ReportedChanges()
  let nodeId: string | undefined
  const begin = (turn: Turn) =>
    [
      BEGIN,
      ...(turn === 'none' ? [] : [TURNS[turn]]),
      nodeId === undefined ? TRANSACTION_ID : transactionOf(nodeId),
    ].join(';')
  const listenServers = listenUrl === undefined || listenUrl === url ? servers : new Servers(listenUrl)
  const foreign = new ForeignChanges({
    clock,
    random,
    log,
    servers: listenServers,
    pool: pools.reads,
    changes,
  })
  if (isServing) {
    foreign.start()
    time.start()
  }
  const writer = new TransactionWriter(
    { clock, random, reader, onCommitted, report: topic => report(topic) },
    () => writingConnection(),
  )

  function report(topic: Topic): void {
    changes.report(topic)
    foreign.noteOwn(topic)
  }

  function writingConnection(): WritingConnection {
    let writes = 0
    let turn: Turn = 'none'
    // Of all statements of a transaction, also of works that failed: a notification too many does no harm.
    const written = new Set<Topic>()
    const dialect = postgresDialect(pools.writes, {
      begin() {
        written.clear()
        return begin(turn)
      },
      onWrite(sql) {
        writes += 1
        for (const topic of topicsOfStatement(sql)) written.add(topic)
      },
      onCommit() {
        for (const topic of written) foreign.noteOwn(topic)
      },
    })
    return {
      db: new Kysely<Tables>({ dialect }),
      writes: () => writes,
      takeTurn: wanted => (turn = wanted),
    }
  }

  return {
    dialect: 'postgres',
    reader,
    slowReader: new Kysely<Tables>({ dialect: slowPostgresDialect(pools.slow) }),
    exportReader: new Kysely<Tables>({ dialect: slowPostgresDialect(pools.exports) }),
    shared: new Kysely<Tables>({ dialect: postgresDialect(pools.reads) }),
    storage: UNWATCHED,
    changes,
    actAs(id) {
      if (!isUuid(id)) throw new Error('a node id is a UUID')
      nodeId = id
    },
    announce: topic => foreign.noteOwn(topic),
    isTransient,
    write: (work, writeOptions) => writer.write(work, writeOptions),
    async [Symbol.asyncDispose]() {
      await writer.idle()
      time.close()
      await foreign.close()
      await endPools()
    },
  }
}

/** Reads a database of any version in one transaction that can change nothing. @throws Error */
export async function readPostgres<T>(url: string, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  const servers = new Servers(url)
  const pool = openPool({
    servers,
    size: 1,
    name: 'postroad read',
    answerMs: COUNTING_MS,
    onLost: () => undefined,
  })
  try {
    await findServer(servers)
    const db = new Kysely<Tables>({ dialect: postgresDialect(pool, { isReader: true }) })
    await requireServer(db)
    return await db.transaction().execute(work)
  } finally {
    await pool.end()
  }
}

/** @throws Error */
async function requireServer(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{
    version: string
    encoding: string
  }>`select current_setting('server_version_num') as version,
    current_setting('server_encoding') as encoding`.execute(db)
  const { version = '0', encoding = '' } = rows[0] ?? {}
  if (Number(version) < OLDEST_SERVER)
    throw new Error('the PostgreSQL server is too old; version 15 or later is required')
  if (encoding !== 'UTF8')
    throw new Error(
      `the database is encoded in ${encoding}; create it with \`createdb --encoding=UTF8 --template=template0\``,
    )
}
