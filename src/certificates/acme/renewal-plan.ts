/**
 * When a certificate is ordered: table and arithmetic, without the ordering.
 *
 * Called by `renewal.ts`, and by `postroad doctor`, which tells. A CA counts attempts as well, and shuts out for a week who asks too often
 * (Let's Encrypt: 5 failed proofs an hour for a name, 5 certificates a week for the same names), so a day has few of them whatever
 * happens, restarts included. Pure.
 */
import { retryDelayMs } from '../../core/backoff.js'
import type { AcmeState } from './acme-files.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** After the first failure 10 minutes, then 40, 2 h 40, 10 h 40, and a day at most; each with jitter. */
const RETRIES = { firstMs: 10 * 60_000, factor: 4, maxMs: DAY_MS }
export const ATTEMPTS_PER_DAY = 5
/** A clock that was wrong when the time was noted must not put it off for years; a CA may ask for a week. */
const LONGEST_DELAY_MS = 8 * DAY_MS

export interface InUse {
  readonly validFrom: number
  readonly expiresAt: number
  /** All names that are wanted. */
  readonly coversNames: boolean
}

/** A third of the lifetime before its end, or when the CA suggests it, if that is earlier. */
export function renewAt({ validFrom, expiresAt }: InUse, suggestedAt: number | undefined): number {
  const usual = validFrom + ((expiresAt - validFrom) * 2) / 3
  return Math.min(usual, suggestedAt ?? Infinity)
}

/** @param inUse undefined: none of this CA's is in use */
export function isDue(inUse: InUse | undefined, suggestedAt: number | undefined, now: number): boolean {
  return !inUse || !inUse.coversNames || now >= renewAt(inUse, suggestedAt)
}

/** @returns when an attempt may be made: now, or later */
export function mayTryAt({ attempts, nextAttemptAt }: AcmeState, now: number): number {
  const recent = recentAttempts(attempts, now)
  const [first] = recent.slice(-ATTEMPTS_PER_DAY)
  const byCount = recent.length < ATTEMPTS_PER_DAY || first === undefined ? now : first + DAY_MS
  const planned = nextAttemptAt > now + LONGEST_DELAY_MS ? now : nextAttemptAt
  return Math.max(now, byCount, planned)
}

/** As it is written down before an attempt: one that never ends has failed. @param fraction uniform in [0, 1) */
export function stateBefore(state: AcmeState, now: number, fraction: number): AcmeState {
  return {
    ...state,
    attempts: [...recentAttempts(state.attempts, now), now],
    failures: state.failures + 1,
    nextAttemptAt: now + retryDelayMs(RETRIES, Math.min(state.failures + 1, 10), fraction),
    fault: 'the attempt was broken off',
  }
}

/** Moments of the future are those of another clock. */
function recentAttempts(attempts: readonly number[], now: number): number[] {
  return attempts.filter(at => at > now - DAY_MS && at <= now)
}
