/**
 * Turns SQLite's storage errors into `unavailable`, with a message for the client: it is not at fault, nothing was stored, and a retry may
 * succeed.
 *
 * Called when a transaction failed. Pure. Other errors are returned unchanged.
 */
import { AppError } from '../../core/errors.js'

/** Result codes (sqlite.org/rescode.html) by prefix: extended codes start with the primary one. */
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

/** SQLite's result code; undefined for errors not thrown by SQLite. */
export function sqliteCode(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : undefined
}

/** The code, if it is a storage fault and not the statement's. */
export function storageCode(thrown: unknown): string | undefined {
  const code = sqliteCode(thrown)
  return code !== undefined && faultOf(code) ? code : undefined
}

/** @returns `unavailable` for a storage fault, with SQLite's error as cause; otherwise the error itself */
export function storageRefusal(thrown: Error): Error {
  const fault = faultOf(sqliteCode(thrown) ?? '')
  if (!fault) return thrown
  const [, message, retryAfterMs] = fault
  return new AppError('unavailable', message, { retryAfterMs, cause: thrown })
}

function faultOf(code: string) {
  return FAULTS.find(([beginning]) => code.startsWith(beginning))
}
