/**
 * Quick check of a database file before the server uses it: whether it is our database and complete.
 *
 * Checks the header (magic, page size), the file size against the header unless a log could supply the rest, the schema, that the root of
 * every table and index is inside the file, and the first and last row of every table. `PRAGMA integrity_check` would take minutes on a
 * large file, so damage in the middle is only found when it is read.
 *
 * Used by `open-sqlite.ts`. Standards: sqlite.org/fileformat2.html §1.3. Throws DamagedDatabaseError, whose message says what to do.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import type { Database as SqliteHandle } from 'better-sqlite3'
import { describeError } from '../../core/errors.js'

/** The file is not a database, or incomplete; the message says what to do. */
export class DamagedDatabaseError extends Error {
  override readonly name = 'DamagedDatabaseError'

  constructor(file: string, what: string) {
    super(
      `the database ${file} is damaged: ${what}; move it away together with its -wal and restore a backup`,
    )
  }
}

const MAGIC = 'SQLite format 3\0'
const HEADER_OCTETS = 100

/** Call before SQLite opens it; a missing or empty file is a new database. @throws DamagedDatabaseError */
export function checkHeader(file: string): void {
  const fault = headerFault(file)
  if (fault !== undefined) throw new DamagedDatabaseError(file, fault)
}

/** The same check of a backup, which is no database in use: the remedy is another file. @throws Error */
export function checkBackupHeader(file: string): void {
  const fault = headerFault(file)
  if (fault !== undefined)
    throw new Error(
      `the backup ${file} is incomplete or damaged: ${fault}; copy it again from where it was made, or use another backup`,
    )
}

function headerFault(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat || stat.size === 0) return undefined
  // Closing a file drops all of the process's locks on it, so nothing here may have it open yet.
  const descriptor = openSync(file, 'r')
  try {
    const header = Buffer.alloc(HEADER_OCTETS)
    const read = readSync(descriptor, header, 0, HEADER_OCTETS, 0)
    const { size } = fstatSync(descriptor)
    return faultOfHeader(header.subarray(0, read), size, hasLog(file))
  } finally {
    closeSync(descriptor)
  }
}

/** A log that was not checkpointed may hold the missing pages. */
function hasLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
}

function faultOfHeader(header: Buffer, size: number, hasLog: boolean): string | undefined {
  if (header.length < HEADER_OCTETS) return `it has ${size} octets`
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'it is not an SQLite database'
  const stated = header.readUInt16BE(16)
  const pageSize = stated === 1 ? 65_536 : stated
  if (pageSize < 512 || (pageSize & (pageSize - 1)) !== 0) return 'its header is invalid'
  const pages = header.readUInt32BE(28)
  // The page count is valid if both change counters agree; old SQLite versions did not maintain it.
  const isCountValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  if (!hasLog && isCountValid && size < pages * pageSize)
    return `it has ${size} octets of ${pages * pageSize}`
  return undefined
}

/** Call after opening; takes a few milliseconds. @throws DamagedDatabaseError */
export function checkContent(file: string, handle: SqliteHandle): void {
  try {
    const pages = handle.pragma('page_count', { simple: true }) as number
    const beyond = handle.prepare('select name from sqlite_schema where rootpage > ?').pluck().all(pages)
    if (beyond.length > 0) throw new Error(`${beyond.join(', ')}: beyond its end`)
    for (const { name } of tables(handle)) {
      const table = `"${name.replaceAll('"', '""')}"`
      handle.prepare(`select * from ${table} order by rowid limit 1`).get()
      handle.prepare(`select * from ${table} order by rowid desc limit 1`).get()
    }
  } catch (error) {
    throw new DamagedDatabaseError(file, describeError(error))
  }
}

function tables(handle: SqliteHandle): { name: string }[] {
  return handle
    .prepare("select name from pragma_table_list where schema = 'main' and type = 'table' and wr = 0")
    .all() as { name: string }[]
}
