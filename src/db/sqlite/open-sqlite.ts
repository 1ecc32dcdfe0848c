/**
 * Opens the embedded SQLite database: one connection that writes, one that only reads.
 *
 * Called by the composition root and by commands. Brings the schema up to date before handing anything out. Fails
 * with a plain Error whose text an operator can act on: unreadable or damaged file, newer schema, disk full.
 */
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import { describeError } from '../../core/errors.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { checkContent, checkHeader, DamagedDatabaseError } from './check-file.js'
import { Checkpointer, type CheckpointerParts, type LogLength } from '../threads/checkpointer.js'
import type { Database, Queries } from '../database.js'
import { GroupCommit } from '../group-commit.js'
import { migrateToLatest } from '../migrate.js'
import { StorageWatch, UNWATCHED, type StorageWatchParts } from './storage-watch.js'
import { sqliteCode } from './storage-fault.js'
import { slowReadingDialect, sqliteDialect, sqliteReadingDialect } from './sqlite-dialect.js'
import { SlowReader, type SlowReaderParts } from '../threads/slow-reader.js'
import type { Tables } from '../tables.js'

/** How long opening waits for another process, which may be recovering the log. */
const OPENING_TIMEOUT_MS = 5_000
/** How long a statement waits afterwards, and everything else with it; the write lock is waited for beside it. */
const BUSY_TIMEOUT_MS = 5

/**
 * Pages in the log (16 MB) from which on a commit brings them over, where no thread does. A checkpoint writes each page
 * once, however often it was written to the log: four times fewer than SQLite's own 1,000 take a tenth off.
 */
const LOG_PAGES = 4_000

/**
 * Pages the writer keeps, 16 MB at most, and everybody reads. Rows and index entries go to the end of their table or to few
 * places, so that these are enough; and more of them cost every commit, for which SQLite goes through all of them in databases
 * of less than 1 GB (balancing a tree moves pages to a number beyond the end for a moment).
 */
const CACHE_KILOBYTES = 16_384

export interface SqliteOptions {
  /** Path of the database file; its folder exists. */
  readonly file: string
  readonly clock: Clock
  /** False for commands that only look: an older schema is then refused instead of migrated. */
  readonly mayMigrate?: boolean
  /** For a server, which writes much and must not stand still: checkpoints in a thread, instead of inside of commits. */
  readonly checkpoints?: Omit<CheckpointerParts, 'clock'>
  /** For a server, which many wait for: a thread for reads that take long. */
  readonly slowReads?: SlowReaderParts
  /** For a server, which runs for long: looks at the file first, and notices when the disk is full or the files are gone. */
  readonly watch?: StorageWatchParts
}

export async function openSqlite({
  file,
  clock,
  mayMigrate = true,
  checkpoints,
  watch,
  slowReads,
}: SqliteOptions): Promise<Database> {
  if (watch) checkHeader(file)
  const writeHandle = openWriter(file)
  const { dialect, run } = sqliteDialect(writeHandle, clock)
  const writer = new Kysely<Tables>({ dialect })
  try {
    if (watch) checkContent(file, writeHandle)
    await migrateToLatest(writer, 'sqlite', mayMigrate)
  } catch (error) {
    await writer.destroy()
    throw error
  }
  // What a savepoint would have to put back is kept in memory: a file for it would be made, filled and deleted with every
  // commit. Only now, since a migration may have an index of millions of rows to sort.
  writeHandle.pragma('temp_store = MEMORY')
  writeHandle.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
  const readHandle = new BetterSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
  const reading = sqliteReadingDialect(readHandle, writeHandle, clock)
  const reader: Queries = Object.assign(new Kysely<Tables>({ dialect: reading.dialect }), {
    run: reading.run,
  })
  const slowReader = slowReads
    ? new Kysely<Tables>({ dialect: slowReadingDialect(new SlowReader(slowReads, clock, file)) })
    : reader
  const checkpointer =
    checkpoints &&
    new Checkpointer(
      { ...checkpoints, clock },
      {
        file,
        logLength: logLengthOf(writeHandle),
        commitsCheckpoint: isWanted =>
          void writeHandle.pragma(`wal_autocheckpoint = ${isWanted ? LOG_PAGES : 0}`),
      },
    )
  const storage = watch && new StorageWatch(watch, clock, file)
  await storage?.start()
  const groups = new GroupCommit(writer, clock, { checkpointer, storage, run })
  // Seen from the writing connection, only other processes change it: the reading one never writes.
  const selectVersion = writeHandle.prepare('pragma data_version').pluck()
  const dataVersion = () => Number(selectVersion.get())
  let seenVersion = dataVersion()
  let versionOfTurn: number | undefined
  return {
    dialect: 'sqlite',
    reader,
    slowReader,
    storage: storage ?? UNWATCHED,
    write: (work, options) => groups.write(work, options),
    hasForeignWrites() {
      const before = seenVersion
      seenVersion = dataVersion()
      return seenVersion !== before
    },
    foreignVersion() {
      if (versionOfTurn === undefined) {
        versionOfTurn = dataVersion()
        void nextTurn().then(() => (versionOfTurn = undefined))
      }
      return versionOfTurn
    },
    async [Symbol.asyncDispose]() {
      await groups.idle()
      storage?.close()
      await checkpointer?.close()
      if (slowReader !== reader) await slowReader.destroy()
      await reader.destroy()
      await writer.destroy()
    },
  }
}

function openWriter(file: string): BetterSqlite.Database {
  const handle = new BetterSqlite(file, { timeout: OPENING_TIMEOUT_MS })
  try {
    configure(handle)
    return handle
  } catch (error) {
    handle.close()
    throw /^SQLITE_(NOTADB|CORRUPT)/.test(sqliteCode(error) ?? '')
      ? new DamagedDatabaseError(file, describeError(error))
      : error
  }
}

function configure(handle: BetterSqlite.Database): void {
  handle.pragma('journal_mode = WAL')
  // The bundled SQLite defaults to NORMAL in WAL mode, which loses acknowledged commits at power failure.
  handle.pragma('synchronous = FULL')
  handle.pragma('foreign_keys = ON')
  handle.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
  handle.pragma(`cache_size = -${CACHE_KILOBYTES}`)
}

/** A checkpoint of the kind that does nothing tells how much there would be to do. */
function logLengthOf(handle: BetterSqlite.Database): () => LogLength {
  const ask = handle.prepare<[], [number, number, number]>('pragma wal_checkpoint(noop)').raw()
  return () => {
    const [, written = 0, broughtOver = 0] = ask.get() ?? []
    return { written, broughtOver }
  }
}
