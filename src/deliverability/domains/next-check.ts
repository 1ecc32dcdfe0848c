/**
 * What a check of a domain's records means for the domain, and when it is checked next.
 *
 *   not verified, found right       verified from now on
 *   not verified, wrong or unknown  asked again: every 5 minutes for an hour after somebody cared (added it, pressed verify),
 *                                   hourly for a day, every 6 hours for a week, then daily for as long as it is there
 *   verified, found right           asked again after a day
 *   verified, no answer             nothing changes; asked again after 6 hours
 *   verified, found wrong           still sends, and says since when; asked again every 6 hours. After 3 days and at least
 *                                   3 checks that all found it wrong, it is not verified any more
 *   verified, verify pressed        a client that asks gets the answer: found wrong, it is not verified any more; where the operator
 *                                   looks (`postroad domain verify`), nothing ends earlier than it would have
 *   vouched                         verified by the operator's word; never asked by itself
 *   of a sandbox                    verified; never asked by itself
 *
 * "Wrong" is a definite answer (a record missing, or another one there); servers that are silent or broken never count. Pure.
 */
import type { Domain } from './domain-store.js'
import type { DomainCheck } from './verify-domain.js'

/** The part of a domain that checks move. */
export type VerificationState = Pick<
  Domain,
  'verifiedAt' | 'failingSince' | 'failedChecks' | 'watchedSince' | 'nextCheckAt'
>

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** A mistake at the name servers on a Friday evening is found and mended by then. */
const GRACE_MS = 3 * DAY_MS
const MIN_FAILED_CHECKS = 3

/** Of a domain that is not verified: how often it is asked about, by the time since somebody cared. */
const UNVERIFIED_INTERVALS = [
  { withinMs: HOUR_MS, everyMs: 5 * MINUTE_MS },
  { withinMs: DAY_MS, everyMs: HOUR_MS },
  { withinMs: 7 * DAY_MS, everyMs: 6 * HOUR_MS },
  { withinMs: Infinity, everyMs: DAY_MS },
] as const

const VERIFIED_EVERY_MS = DAY_MS
const RETRY_EVERY_MS = 6 * HOUR_MS

/** No domain is due later than that; one that is was planned by a clock that was ahead. */
export const MAX_INTERVAL_MS = DAY_MS

/** Checks of domains that were added together drift apart. */
const JITTER = 0.1

export interface CheckFacts {
  readonly verdict: DomainCheck['verdict']
  readonly now: number
  /** Somebody asked, and waits for the answer. */
  readonly isAsked: boolean
  /** Who asks only looks: a domain that is verified has its 3 days all the same. */
  readonly hasGrace?: boolean
  /** Uniform random number in [0, 1). */
  readonly fraction: number
}

export function nextVerificationState(
  domain: VerificationState & Pick<Domain, 'isVouched' | 'isSandbox'>,
  facts: CheckFacts,
): VerificationState {
  const { verdict, now, isAsked, hasGrace = false, fraction } = facts
  if (domain.isVouched || domain.isSandbox)
    return { ...domain, verifiedAt: domain.verifiedAt ?? now, failingSince: null, nextCheckAt: null }
  // A clock that was ahead for a while must not leave moments behind that have yet to come.
  const watchedSince = Math.min(domain.watchedSince, now)
  const failingSince = domain.failingSince === null ? null : Math.min(domain.failingSince, now)
  const before = { ...domain, watchedSince, failingSince }
  const after = { ...before, ...applyVerdict(before, verdict, now, isAsked && !hasGrace) }
  if (isAsked && after.verifiedAt === null) after.watchedSince = now
  const everyMs = intervalMs(after, verdict, now)
  return { ...after, nextCheckAt: now + Math.round(everyMs * (1 - JITTER * fraction)) }
}

/** Of a domain that was just added. */
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
