/**
 * Checks a domain's records in DNS, and decides whether it is verified and when it is checked next.
 *
 * A definite wrong answer fails a record; no answer (SERVFAIL, timeout) leaves it pending. A CNAME into our zone counts whether or not the
 * zone is served yet. A sandbox domain is checked against a simulated zone that contains all its records.
 */
import { recordMatchesKey } from '../../mail/dkim/dkim-record.js'
import type { DnsAnswer, Resolver } from '../../world/dns/dns.js'
import {
  dkimTarget,
  dmarcName,
  dnsRecords,
  isRequired,
  verificationName,
  verificationValue,
} from './dns-records.js'
import type { DomainParts } from './domain-parts.js'
import { dkimName, type Domain, type Finding, type Selector, type VerificationState } from './domain-store.js'

export interface DomainCheck {
  readonly findings: Record<string, Finding>
  /** `unknown`: DNS did not answer. */
  readonly verdict: 'verified' | 'failed' | 'unknown'
}

export async function checkDomain(domain: Domain, dkimZone: string, dns: Resolver): Promise<DomainCheck> {
  const required = await Promise.all([
    checkText(verificationName(domain), text => text.trim() === verificationValue(domain), dns),
    ...domain.selectors.filter(isRequired).map(selector => checkSelector(domain, selector, dkimZone, dns)),
  ])
  const optional = await Promise.all(
    domain.selectors
      .filter(selector => !isRequired(selector))
      .map(selector => checkSelector(domain, selector, dkimZone, dns)),
  )
  // The DMARC record may be at the organizational domain (RFC 7489 §6.6.3), so it is optional.
  const dmarc = await checkText(dmarcName(domain), text => /^v=DMARC1\s*(;|$)/.test(text), dns)
  return {
    findings: Object.fromEntries([...required, ...optional, dmarc]),
    verdict: required.every(([, finding]) => finding.status === 'verified')
      ? 'verified'
      : required.some(([, finding]) => finding.status === 'failed')
        ? 'failed'
        : 'unknown',
  }
}

async function checkText(
  name: string,
  isRight: (text: string) => boolean,
  dns: Resolver,
): Promise<[string, Finding]> {
  const answer = await dns.txt(name)
  return [name, judge(answer, answer.kind === 'found' && answer.records.some(isRight))]
}

/**
 * Accepts the CNAME, or instead a TXT record with this key.
 *
 * A renewed standby is pending instead of failed: it does not sign yet, and a domain must not lose its verification because its owner has
 * not published a new value.
 *
 * @returns record name and finding
 */
export async function checkSelector(
  domain: Domain,
  selector: Selector,
  dkimZone: string,
  dns: Resolver,
): Promise<[string, Finding]> {
  const name = dkimName(domain, selector)
  const finding = await findKey(name, selector, dkimZone, dns)
  const isAwaited = finding.status === 'failed' && selector.replacedAt !== null
  return [name, isAwaited ? { ...finding, status: 'pending' } : finding]
}

async function findKey(name: string, selector: Selector, dkimZone: string, dns: Resolver): Promise<Finding> {
  const alias = await dns.cname(name)
  if (alias.kind === 'found') {
    const target = dkimTarget(selector, dkimZone).toLowerCase()
    const isRight = alias.records.some(record => record.toLowerCase() === target)
    return judge(alias, isRight)
  }
  if (alias.kind === 'unavailable') return judge(alias, false)
  const text = await dns.txt(name)
  return judge(text, text.kind === 'found' && text.records.some(r => recordMatchesKey(r, selector.publicKey)))
}

const SHOWN_RECORDS = 10
const SHOWN_CHARACTERS = 300

function judge(answer: DnsAnswer<string>, isRight: boolean): Finding {
  switch (answer.kind) {
    case 'found':
      return {
        status: isRight ? 'verified' : 'failed',
        found: answer.records.slice(0, SHOWN_RECORDS).map(record => record.slice(0, SHOWN_CHARACTERS)),
      }
    case 'missing':
      return { status: 'failed', found: [] }
    case 'unavailable':
      return { status: 'pending', found: [`DNS did not answer: ${answer.reason}`], isUnanswered: true }
  }
}

export function resolverFor(
  domain: Domain,
  { dkimZone, freshResolver }: Pick<DomainParts, 'dkimZone' | 'freshResolver'>,
): Resolver {
  return domain.isSandbox ? simulatedResolver(domain, dkimZone) : freshResolver()
}

const MISSING: DnsAnswer<never> = { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }

function simulatedResolver(domain: Domain, dkimZone: string): Resolver {
  const records = dnsRecords(domain, dkimZone)
  const find = async (type: 'CNAME' | 'TXT', name: string): Promise<DnsAnswer<string>> => {
    const found = records.filter(record => record.type === type && record.name === name)
    return found.length === 0
      ? MISSING
      : { kind: 'found', records: found.map(({ value }) => value), ttlSeconds: 0 }
  }
  return {
    mx: async () => MISSING,
    ipv4: async () => MISSING,
    ipv6: async () => MISSING,
    txt: name => find('TXT', name),
    cname: name => find('CNAME', name),
    ns: async () => MISSING,
    ptr: async () => MISSING,
  }
}

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

/** Spreads the checks of domains added together. */
const JITTER = 0.1

interface CheckFacts {
  readonly verdict: DomainCheck['verdict']
  readonly now: number
  readonly isRequested: boolean
  /** For requests that do not end the verification early. */
  readonly hasGrace?: boolean
  /** Uniform in [0, 1). */
  readonly fraction: number
}

/**
 * Applies a check to a domain's verification, and schedules the next one.
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
export function nextVerificationState(
  domain: VerificationState & Pick<Domain, 'isVouched' | 'isSandbox'>,
  facts: CheckFacts,
): VerificationState {
  const { verdict, now, isRequested, hasGrace = false, fraction } = facts
  if (domain.isVouched || domain.isSandbox)
    return { ...domain, verifiedAt: domain.verifiedAt ?? now, failingSince: null, nextCheckAt: null }
  // Corrects times written while the clock was ahead.
  const watchedSince = Math.min(domain.watchedSince, now)
  const failingSince = domain.failingSince === null ? null : Math.min(domain.failingSince, now)
  const before = { ...domain, watchedSince, failingSince }
  const after = { ...before, ...applyVerdict(before, verdict, now, isRequested && !hasGrace) }
  if (isRequested && after.verifiedAt === null) after.watchedSince = now
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
