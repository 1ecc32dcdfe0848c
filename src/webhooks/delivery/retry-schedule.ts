/**
 * Retry schedule of webhook deliveries.
 *
 *   attempt      1   2    3      4       5    6    7     8
 *   waits first  0   5 s  5 min  30 min  2 h  5 h  10 h  10 h     each ±10 %
 *
 * Pure. Standards: RFC 9110 §10.2.3 (Retry-After), §15.5.11 (410 Gone).
 */
import { JITTER } from '../../core/backoff.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Before each attempt after the first. */
const WAITS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR]

/** Per delivery, until it is replayed. */
export const MAX_ATTEMPTS = WAITS_MS.length + 1

export const GONE = 410

/** Upper bound of Retry-After. */
const MAX_RETRY_AFTER_MS = 24 * HOUR

/** A webhook with no success for this long is disabled. */
export const FAILING_FOR_MS = 5 * 24 * HOUR

/**
 * @param attempts made so far, since the last replay; >= 1
 * @param fraction uniform random number in [0, 1)
 * @param retryAfterMs wait requested by the receiver
 * @returns ms to wait; undefined if that was the last attempt
 */
export function waitAfter(attempts: number, fraction: number, retryAfterMs = 0): number | undefined {
  const planned = WAITS_MS[attempts - 1]
  if (planned === undefined) return undefined
  const jittered = Math.round(planned * (1 - JITTER + 2 * JITTER * fraction))
  return Math.max(jittered, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
}

/** @param now ms since epoch UTC @returns undefined for anything but seconds or an HTTP date */
export function readRetryAfter(field: string | undefined, now: number): number | undefined {
  if (field === undefined) return undefined
  if (/^\d{1,9}$/.test(field)) return Number(field) * SECOND
  const at = /^[A-Z][a-z]{2}, /.test(field) ? Date.parse(field) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
