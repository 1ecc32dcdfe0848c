/**
 * Opens connections to the database file and sets their durability, cache and timeouts.
 *
 * Used by `open-sqlite.ts`. Throws DamagedDatabaseError if the file is not a
 * database, otherwise SQLite's error.
 */
import BetterSqlite from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { DamagedDatabaseError } from './check-file.js'
import { sqliteCode } from '../faults/storage-fault.js'

/** How long opening waits for another process, which may be recovering the log. */
export const OPENING_TIMEOUT_MS = 5_000
/** How long a statement blocks on a lock later, and the process with it; the write lock is awaited without blocking (`write-lock.ts`). */
const BUSY_TIMEOUT_MS = 5

/**
 * Log pages (16 MB) after which a commit checkpoints, if no thread does. A checkpoint writes each page once however often it was logged, so
 * this is cheaper than SQLite's default of 1,000 pages.
 */
const LOG_PAGES = 4_000

/**
 * Page cache, 16 MB. Inserts go to few places, so this suffices. A larger cache slows every commit, since SQLite scans the whole cache in
 * databases below 1 GB (balancing a tree temporarily moves pages beyond the end of the file).
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
  // Only possible on a new file, before the first write: freed pages can then be returned to the file system incrementally.
  handle.pragma('auto_vacuum = incremental')
  handle.pragma('journal_mode = WAL')
  // The bundled SQLite defaults to NORMAL in WAL mode, which loses acknowledged commits at power failure.
  commitsSync(handle, true)
  handle.pragma('foreign_keys = ON')
  commitsCheckpoint(handle, true)
  handle.pragma(`cache_size = -${CACHE_KILOBYTES}`)
}

/** Whether commits checkpoint the log, or leave it to a thread. */
export function commitsCheckpoint(handle: BetterSqlite.Database, isWanted: boolean): void {
  handle.pragma(`wal_autocheckpoint = ${isWanted ? LOG_PAGES : 0}`)
}

/** Whether each commit waits for the disk, or leaves that to `log-sync.ts`. */
export function commitsSync(handle: BetterSqlite.Database, isWanted: boolean): void {
  handle.pragma(`synchronous = ${isWanted ? 'FULL' : 'NORMAL'}`)
}

/** Path of the write-ahead log: beside the real file, not beside a symbolic link to it. */
export function logPathOf(handle: BetterSqlite.Database): string {
  const [main] = handle.pragma('database_list') as readonly { readonly file: string }[]
  return `${main?.file ?? ''}-wal`
}

/** Keeps savepoint journals in memory, since a file would be created and deleted with every commit; shortens the busy timeout. */
export function readyForWork(handle: BetterSqlite.Database): void {
  handle.pragma('temp_store = MEMORY')
  handle.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
}

export function openReader(file: string): BetterSqlite.Database {
  return new BetterSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
}
