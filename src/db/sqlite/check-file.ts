/**
 * A look at a database file before the server works with it: whether it is a database of ours at all, and whole as far as can be
 * told quickly.
 *
 * Covers: the header (magic, page size); a file that is shorter than the header says, where no log could make up for it; the
 * schema; that the root of every table and index lies in the file; the first and the last row of every table. Does not read
 * everything (`PRAGMA integrity_check` does, in minutes for a large file), so damage in the middle is met when it is read.
 *
 * Called by `open-sqlite.ts`. Standards: sqlite.org/fileformat2.html §1.3. Fails: by DamagedDatabaseError, whose text says
 * what to do.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import type { Database as SqliteHandle } from 'better-sqlite3'
import { describeError } from '../../core/errors.js'

/** The file is no database, or not all of it; the text says what to do. */
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

/** Before SQLite opens it: an empty file, or none, is a new database. @throws DamagedDatabaseError */
export function checkHeader(file: string): void {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat || stat.size === 0) return
  // A process that closes a file gives up every lock it has on it: nothing of this process may have it open now.
  const descriptor = openSync(file, 'r')
  try {
    const header = Buffer.alloc(HEADER_OCTETS)
    const read = readSync(descriptor, header, 0, HEADER_OCTETS, 0)
    const { size } = fstatSync(descriptor)
    const fault = faultOfHeader(header.subarray(0, read), size, hasLog(file))
    if (fault !== undefined) throw new DamagedDatabaseError(file, fault)
  } finally {
    closeSync(descriptor)
  }
}

/** A log that was not brought over may hold the pages that a file lacks. */
function hasLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
}

function faultOfHeader(header: Buffer, size: number, hasLog: boolean): string | undefined {
  if (header.length < HEADER_OCTETS) return `it has ${size} octets`
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'it is no SQLite database'
  const stated = header.readUInt16BE(16)
  const pageSize = stated === 1 ? 65_536 : stated
  if (pageSize < 512 || (pageSize & (pageSize - 1)) !== 0) return 'its header makes no sense'
  const pages = header.readUInt32BE(28)
  // The count is valid where both change counters agree; older versions of SQLite did not keep it.
  const isCountValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  if (!hasLog && isCountValid && size < pages * pageSize)
    return `it has ${size} octets of ${pages * pageSize}`
  return undefined
}

/** After it was opened; a few milliseconds. @throws DamagedDatabaseError */
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
