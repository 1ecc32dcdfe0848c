/**
 * Distinguishes transient database errors (locked, disk full, connection lost) from those caused by the values, which a retry would repeat.
 *
 * Pure. Standards: SQLSTATE classes as in PostgreSQL's Appendix A.
 */
import { AppError } from '../../core/errors.js'
import { isLost } from './postgres-fault.js'
import { storageCode } from './storage-fault.js'

/** Connection, rollback (deadlock, serialization), resources, object state (locks), operator intervention, I/O. */
const TRANSIENT_CLASSES = new Set(['08', '40', '53', '55', '57', '58'])
/** See `Database.isTransient`. */
export function isTransient(thrown: unknown): boolean {
  if (thrown instanceof AppError) return thrown.code === 'unavailable'
  if (storageCode(thrown) !== undefined || isLost(thrown)) return true
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && TRANSIENT_CLASSES.has(code.slice(0, 2))
}

/** Whether the cause is the database (locked, full, unreachable, a conflict) and not the statement. */
export function isStorageError(thrown: unknown): boolean {
  return !(thrown instanceof AppError) && isTransient(thrown)
}

/** Whether the database's server is gone, or the way to it. */
export function isUnreachable(thrown: unknown): boolean {
  return isLost(thrown instanceof AppError ? thrown.cause : thrown)
}
