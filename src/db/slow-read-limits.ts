/** Limits of reads that can take long, the same on both databases, and the errors for clients that reach them. */
import { AppError } from '../core/errors.js'

/** Time limit of a statement, from when it begins. */
export const RUNNING_LIMIT_MS = 5_000
/** Maximum statements per queue, shared fairly: half for a workspace that is alone, a quarter for its only key. */
export const MAX_WAITING = 400

export function tooBusy(): AppError {
  return new AppError('unavailable', 'too many long-running queries; try again in a few seconds', {
    retryAfterMs: 5_000,
  })
}

export function tooLong(): AppError {
  const seconds = RUNNING_LIMIT_MS / 1_000
  return new AppError(
    'unavailable',
    `the query took longer than ${seconds} s and was stopped; narrow it, e.g. with a filter`,
    { retryAfterMs: 30_000 },
  )
}
