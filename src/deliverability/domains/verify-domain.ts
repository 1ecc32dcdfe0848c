/**
 * Checks a domain's records in DNS.
 *
 * A definite wrong answer fails a record; a missing answer (SERVFAIL, timeout) leaves it pending and says so. What the
 * owner publishes is judged: a CNAME into our zone counts whether or not the zone is served yet. A sandbox domain is
 * checked against a simulated zone that contains all its records.
 */
import { recordMatchesKey } from '../../mail/dkim/dkim-record.js'
import type { DnsAnswer, Resolver } from '../../world/dns/dns.js'
import {
  dkimTarget,
  dmarcName,
  isRequired,
  verificationName,
  verificationValue,
  dnsRecords,
} from './dns-records.js'
import { dkimName, type Domain, type Finding, type Selector } from './domain-store.js'
import type { DomainParts } from './domain-parts.js'

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
 * A renewed standby is pending instead of failed: it does not sign yet, and a domain must not lose its verification
 * because its owner has not published a new value.
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
  return domain.isSandbox ? publishedAsAsked(domain, dkimZone) : freshResolver()
}

const MISSING: DnsAnswer<never> = { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }

function publishedAsAsked(domain: Domain, dkimZone: string): Resolver {
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
