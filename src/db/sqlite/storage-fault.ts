/**
 * What SQLite says when it cannot write, in words for whoever asked: the caller is not at fault, nothing was done, and the
 * same may succeed later.
 *
 * Called where a transaction failed. Pure. Fails: never; what is no fault of the storage stays as it was thrown.
 */
import { AppError } from '../../core/errors.js'

/** Result codes (sqlite.org/rescode.html) by their beginning: extended codes begin with the primary one. */
const FAULTS: readonly (readonly [code: string, message: string, retryAfterMs: number])[] = [
  ['SQLITE_BUSY', 'the database is locked by another process; try again in a few seconds', 5_000],
  ['SQLITE_LOCKED', 'the database is locked by another process; try again in a few seconds', 5_000],
  ['SQLITE_PROTOCOL', 'the database is locked by another process; try again in a few seconds', 5_000],
  ['SQLITE_NOMEM', 'the mail server is short of memory; nothing was stored, try again later', 60_000],
  ['SQLITE_FULL', 'the disk is full; nothing was stored, try again later', 60_000],
  ['SQLITE_IOERR', 'the disk cannot be read or written; nothing was stored, try again later', 60_000],
  ['SQLITE_READONLY', 'the database cannot be written; nothing was stored, try again later', 60_000],
  ['SQLITE_CANTOPEN', 'the database cannot be opened; nothing was stored, try again later', 60_000],
  ['SQLITE_CORRUPT', 'the database file is damaged; nothing was stored, try again later', 60_000],
  ['SQLITE_NOTADB', 'the database file is damaged; nothing was stored, try again later', 60_000],
]

/** The code that SQLite gave what it threw; undefined where somebody else threw it. */
export function sqliteCode(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined
}

/** The same where it is a fault of the storage, and not of what was asked of it. */
export function storageCode(thrown: unknown): string | undefined {
  const code = sqliteCode(thrown)
  return code !== undefined && faultOf(code) ? code : undefined
}

/** @returns `unavailable` for a fault of the storage, with what SQLite said as its cause; else the error itself */
export function storageRefusal(thrown: Error): Error {
  const fault = faultOf(sqliteCode(thrown) ?? '')
  if (!fault) return thrown
  const [, message, retryAfterMs] = fault
  return new AppError('unavailable', message, { retryAfterMs, cause: thrown })
}

function faultOf(code: string) {
  return FAULTS.find(([beginning]) => code.startsWith(beginning))
}
