/**
 * What a check means for a domain's verification, and when the next one is due. Pure.
 *
 *   not verified, records right     verified from now on
 *   not verified, wrong or unknown  rechecked every 5 minutes for an hour after it was added or verify was called, hourly for a
 *                                   day, every 6 hours for a week, then daily
 *   verified, records right         rechecked after a day
 *   verified, no answer             unchanged; rechecked after 6 hours
 *   verified, records wrong         still verified; rechecked every 6 hours. After 3 days and at least 3 consecutive failed checks
 *                                   it loses its verification
 *   verified, verify called         by a client: wrong records end the verification at once. By the operator
 *                                   (`postroad domain verify`): as in an automatic check
 *   vouched, or of a sandbox        verified; never rechecked
 *
 * "Wrong" is a definite answer (a record is missing or different); name servers that are silent or broken never count.
 */
import type { Domain } from './domain-store.js'
import type { DomainCheck } from './verify-domain.js'

export type VerificationState = Pick<
  Domain,
  'verifiedAt' | 'failingSince' | 'failedChecks' | 'watchedSince' | 'nextCheckAt'
>

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** A DNS mistake made on a Friday evening is fixed by then. */
const GRACE_MS = 3 * DAY_MS
const MIN_FAILED_CHECKS = 3

/** Check intervals of an unverified domain, by the time since `watchedSince`. */
const UNVERIFIED_INTERVALS = [
  { withinMs: HOUR_MS, everyMs: 5 * MINUTE_MS },
  { withinMs: DAY_MS, everyMs: HOUR_MS },
  { withinMs: 7 * DAY_MS, everyMs: 6 * HOUR_MS },
  { withinMs: Infinity, everyMs: DAY_MS },
] as const

const VERIFIED_EVERY_MS = DAY_MS
const RETRY_EVERY_MS = 6 * HOUR_MS

/** A domain due later than this was scheduled by a clock that was ahead. */
export const MAX_INTERVAL_MS = DAY_MS

/** Spreads the checks of domains added together. */
const JITTER = 0.1

export interface CheckFacts {
  readonly verdict: DomainCheck['verdict']
  readonly now: number
  readonly isAsked: boolean
  /** A request that does not end the verification early. */
  readonly hasGrace?: boolean
  /** Uniform in [0, 1). */
  readonly fraction: number
}

export function nextVerificationState(
  domain: VerificationState & Pick<Domain, 'isVouched' | 'isSandbox'>,
  facts: CheckFacts,
): VerificationState {
  const { verdict, now, isAsked, hasGrace = false, fraction } = facts
  if (domain.isVouched || domain.isSandbox)
    return { ...domain, verifiedAt: domain.verifiedAt ?? now, failingSince: null, nextCheckAt: null }
  // Corrects times written while the clock was ahead.
  const watchedSince = Math.min(domain.watchedSince, now)
  const failingSince = domain.failingSince === null ? null : Math.min(domain.failingSince, now)
  const before = { ...domain, watchedSince, failingSince }
  const after = { ...before, ...applyVerdict(before, verdict, now, isAsked && !hasGrace) }
  if (isAsked && after.verifiedAt === null) after.watchedSince = now
  const everyMs = intervalMs(after, verdict, now)
  return { ...after, nextCheckAt: now + Math.round(everyMs * (1 - JITTER * fraction)) }
}

export function firstCheckAt(addedAt: number): number {
  return addedAt + UNVERIFIED_INTERVALS[0].everyMs
}

function applyVerdict(
  { verifiedAt, failingSince, failedChecks }: VerificationState,
  verdict: DomainCheck['verdict'],
  now: number,
  endsAtOnce: boolean,
): Partial<VerificationState> {
  if (verdict === 'verified') return { verifiedAt: verifiedAt ?? now, failingSince: null, failedChecks: 0 }
  if (verdict === 'unknown' || verifiedAt === null) return {}
  const since = failingSince ?? now
  const isLost = endsAtOnce || (now - since >= GRACE_MS && failedChecks + 1 >= MIN_FAILED_CHECKS)
  return isLost
    ? { verifiedAt: null, failingSince: null, failedChecks: 0, watchedSince: now }
    : { failingSince: since, failedChecks: failedChecks + 1 }
}

function intervalMs(
  { verifiedAt, failingSince, watchedSince }: VerificationState,
  verdict: DomainCheck['verdict'],
  now: number,
): number {
  if (verifiedAt !== null)
    return failingSince === null && verdict === 'verified' ? VERIFIED_EVERY_MS : RETRY_EVERY_MS
  const stage = UNVERIFIED_INTERVALS.find(({ withinMs }) => now - watchedSince < withinMs)
  return stage?.everyMs ?? VERIFIED_EVERY_MS
}
