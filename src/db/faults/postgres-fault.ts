/**
 * Maps PostgreSQL's errors: which may pass if the transaction is run again, which mean that nothing can be stored now, and which are the
 * statement's own.
 *
 * Pure. Codes: SQLSTATE, PostgreSQL documentation, Appendix A; network errors as Node names them.
 */
import { AppError } from '../../core/errors.js'
import { RemovedError } from '../removed-error.js'

/** serialization_failure, deadlock_detected, lock_not_available. */
const CONFLICTS = new Set(['40001', '40P01', '55P03'])

/** Network errors, and `pg`'s own, which have no code. */
const LOST_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
])
const LOST_MESSAGES =
  /^(Connection terminated|Client has encountered a connection error|timeout (expired|exceeded when trying to connect)|Query read timeout)/

/** connection_exception, operator_intervention (shutdown, crash), a session ended for its idleness, and a read-only server, as after a failover. */
const LOST_STATES = /^(08|57P0|25006$)/

/** Messages for the client, by the beginning of the SQLSTATE. */
const REFUSALS: readonly (readonly [state: RegExp, message: string, retryAfterMs: number])[] = [
  [/^57014$/, 'the database took too long; nothing was stored, try again in a few seconds', 5_000],
  [/^53100$/, "the database's disk is full; nothing was stored, try again later", 60_000],
  [/^53/, 'the database is short of resources; nothing was stored, try again later', 30_000],
  [/^58/, "the database's disk cannot be read or written; nothing was stored, try again later", 60_000],
  [/^(40|55)/, 'the database is busy; nothing was stored, try again in a few seconds', 5_000],
]

/** SQLSTATE or network error code. */
function codeOf(thrown: unknown): string {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code : ''
}

/** Whether another transaction was in the way, so that running it again may succeed at once. */
export function isConflict(thrown: unknown): boolean {
  return CONFLICTS.has(codeOf(thrown))
}

/** Whether the server cancelled the statement because it took too long. */
export function isTimeout(thrown: unknown): boolean {
  return codeOf(thrown) === '57014'
}

/** Whether a constraint was violated (integrity_constraint_violation), e.g. a key exists already. */
export function isViolation(thrown: unknown): boolean {
  return codeOf(thrown).startsWith('23')
}

/** Whether the server is gone, shuts down, or no longer takes writes. */
export function isLost(thrown: unknown): boolean {
  const code = codeOf(thrown)
  if (LOST_CODES.has(code) || LOST_STATES.test(code)) return true
  return code === '' && thrown instanceof Error && LOST_MESSAGES.test(thrown.message)
}

/** Whether it came from the server or the way to it, not from the program. */
export function isPostgresError(thrown: unknown): boolean {
  return isLost(thrown) || /^[0-9A-Z]{5}$/.test(codeOf(thrown))
}

/** @returns `unavailable` for faults that the values did not cause, with PostgreSQL's error as cause; otherwise the error itself */
export function postgresRefusal(thrown: Error): Error {
  if (thrown instanceof RemovedError)
    return unavailable(`${thrown.message}; it ends and has to start again`, 10_000, thrown)
  if (isLost(thrown))
    return unavailable('the database cannot be reached; try again in a few seconds', 5_000, thrown)
  const code = codeOf(thrown)
  const refusal = code === '' ? undefined : REFUSALS.find(([state]) => state.test(code))
  return refusal ? unavailable(refusal[1], refusal[2], thrown) : thrown
}

function unavailable(message: string, retryAfterMs: number, cause: Error): AppError {
  return new AppError('unavailable', message, { retryAfterMs, cause })
}
