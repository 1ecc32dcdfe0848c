/**
 * Decides when a certificate is ordered.
 *
 * Used by `renewal.ts`, and by `postroad doctor` for display. CAs limit attempts (Let's Encrypt: 5 failed challenges an hour for a name, 5
 * certificates a week for the same names), so attempts per day are limited across restarts. Pure.
 */
import { retryDelayMs } from '../../core/backoff.js'
import type { AcmeState } from './acme-store.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Back-off after failures: 10 minutes, 40, 2 h 40, 10 h 40, then a day at most; each with jitter. */
const RETRIES = { firstMs: 10 * 60_000, factor: 4, maxMs: DAY_MS }
export const ATTEMPTS_PER_DAY = 5
/** Ignores a stored time further ahead, since the clock was wrong; a CA may ask for a week. */
const MAX_DELAY_MS = 8 * DAY_MS

export interface InUse {
  readonly validFrom: number
  readonly expiresAt: number
  /** Whether it covers all configured names. */
  readonly coversNames: boolean
}

/** A third of the lifetime before expiry, or when the CA suggests, if earlier. */
export function renewAt({ validFrom, expiresAt }: InUse, suggestedAt: number | undefined): number {
  const usual = validFrom + ((expiresAt - validFrom) * 2) / 3
  return Math.min(usual, suggestedAt ?? Infinity)
}

/** @param inUse undefined without a certificate of this CA */
export function isDue(inUse: InUse | undefined, suggestedAt: number | undefined, now: number): boolean {
  return !inUse || !inUse.coversNames || now >= renewAt(inUse, suggestedAt)
}

/** @returns when an attempt may be made: now or later */
export function mayTryAt({ attempts, nextAttemptAt }: AcmeState, now: number): number {
  const recent = recentAttempts(attempts, now)
  const [first] = recent.slice(-ATTEMPTS_PER_DAY)
  const byCount = recent.length < ATTEMPTS_PER_DAY || first === undefined ? now : first + DAY_MS
  const planned = nextAttemptAt > now + MAX_DELAY_MS ? now : nextAttemptAt
  return Math.max(now, byCount, planned)
}

/** State stored before an attempt: an attempt that is interrupted counts as failed. @param fraction uniform in [0, 1) */
export function stateBefore(state: AcmeState, now: number, fraction: number): AcmeState {
  return {
    ...state,
    attempts: [...recentAttempts(state.attempts, now), now],
    failures: state.failures + 1,
    nextAttemptAt: now + retryDelayMs(RETRIES, Math.min(state.failures + 1, 10), fraction),
    fault: 'the attempt was interrupted',
  }
}

/** Ignores moments in the future, written under a wrong clock. */
function recentAttempts(attempts: readonly number[], now: number): number[] {
  return attempts.filter(at => at > now - DAY_MS && at <= now)
}
