/**
 * Connections to the database file, each with what it has to be told: how sure a commit is, how much it remembers, how long it waits.
 *
 * Used by `open-sqlite.ts`, and by threads that write by themselves (`threads/thread-database.ts`). Fails: DamagedDatabaseError for
 * what is no database; else as SQLite does.
 */
import BetterSqlite from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { DamagedDatabaseError } from './check-file.js'
import { sqliteCode } from './storage-fault.js'

/** How long opening waits for another process, which may be recovering the log. */
export const OPENING_TIMEOUT_MS = 5_000
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

/** @throws DamagedDatabaseError */
export function openWriter(file: string): BetterSqlite.Database {
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
  // Of a new file only, and before anything is written to it: what is deleted can then be given back bit by bit.
  handle.pragma('auto_vacuum = incremental')
  handle.pragma('journal_mode = WAL')
  // The bundled SQLite defaults to NORMAL in WAL mode, which loses acknowledged commits at power failure.
  commitsSync(handle, true)
  handle.pragma('foreign_keys = ON')
  commitsCheckpoint(handle, true)
  handle.pragma(`cache_size = -${CACHE_KILOBYTES}`)
}

/** Whether its commits bring the log over, or leave that to a thread. */
export function commitsCheckpoint(handle: BetterSqlite.Database, isWanted: boolean): void {
  handle.pragma(`wal_autocheckpoint = ${isWanted ? LOG_PAGES : 0}`)
}

/** Whether each of its commits waits for the disk, or leaves that to who is told of it (`log-sync.ts`). */
export function commitsSync(handle: BetterSqlite.Database, isWanted: boolean): void {
  handle.pragma(`synchronous = ${isWanted ? 'FULL' : 'NORMAL'}`)
}

/** Path of the write-ahead log: beside the file itself, wherever a link to it lies. */
export function logPathOf(handle: BetterSqlite.Database): string {
  const [main] = handle.pragma('database_list') as readonly { readonly file: string }[]
  return `${main?.file ?? ''}-wal`
}

/**
 * What a savepoint would have to put back is kept in memory: a file for it would be made, filled and deleted with every commit. And
 * nobody waits long inside of a statement any more.
 */
export function readyForWork(handle: BetterSqlite.Database): void {
  handle.pragma('temp_store = MEMORY')
  handle.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
}

export function openReader(file: string): BetterSqlite.Database {
  return new BetterSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
}
