/**
 * Evaluates DMARC as a receiver does: finds the policy of an author's domain, and whether another domain is aligned with it.
 *
 * Organizational domains are found by the DNS tree walk of DMARCbis (draft-ietf-dmarc-dmarcbis §4.10) instead of the Public Suffix List,
 * which would have to be kept current. Both agree wherever the domain's owner publishes a record.
 * Standards: RFC 7489 §3.1 (alignment), §6.3 (record), §6.6.3 (discovery). Never throws: silent name servers are a result.
 */
import type { Resolver } from '../../world/dns/dns.js'

export const DMARC_POLICIES = ['none', 'quarantine', 'reject'] as const
export type DmarcPolicy = (typeof DMARC_POLICIES)[number]

export const ALIGNMENT_MODES = ['relaxed', 'strict'] as const
export type AlignmentMode = (typeof ALIGNMENT_MODES)[number]

export interface DmarcRecord {
  /** As published. */
  readonly text: string
  readonly policy: DmarcPolicy
  /** For subdomains of the domain that publishes the record. */
  readonly subdomainPolicy: DmarcPolicy
  readonly dkim: AlignmentMode
  readonly spf: AlignmentMode
  /** The domain says that it is a public suffix (`y`), or that it is not (`n`). */
  readonly psd: 'y' | 'n' | undefined
}

/** DMARC records of a name and of those above it. */
export interface DmarcWalk {
  /** The name asked about, lower case. */
  readonly domain: string
  /** Nearest record, and the name it is published for. */
  readonly found: { readonly domain: string; readonly record: DmarcRecord } | undefined
  readonly organizationalDomain: string
  /** A name server did not answer, so a record may have been missed. */
  readonly isUncertain: boolean
}

/** Names asked at most (DMARCbis §4.10). */
const MAX_STEPS = 8

/** Lenient as RFC 7489 §6.3 asks: unknown tags are ignored; without a valid policy there is no record. */
export function readDmarcRecord(text: string): DmarcRecord | undefined {
  if (!/^v\s*=\s*DMARC1\s*(;|$)/.test(text)) return undefined
  const tags = new Map<string, string>()
  for (const part of text.split(';')) {
    const equals = part.indexOf('=')
    const name = part.slice(0, equals).trim().toLowerCase()
    if (equals > 0 && !tags.has(name))
      tags.set(
        name,
        part
          .slice(equals + 1)
          .trim()
          .toLowerCase(),
      )
  }
  const policyOf = (name: string) => DMARC_POLICIES.find(policy => policy === tags.get(name))
  // A report address without a valid policy counts as none (RFC 7489 §6.6.3).
  const policy = policyOf('p') ?? (tags.has('rua') ? 'none' : undefined)
  if (policy === undefined) return undefined
  const modeOf = (name: string): AlignmentMode => (tags.get(name) === 's' ? 'strict' : 'relaxed')
  const psd = tags.get('psd')
  return {
    text,
    policy,
    subdomainPolicy: policyOf('sp') ?? policy,
    dkim: modeOf('adkim'),
    spf: modeOf('aspf'),
    psd: psd === 'y' || psd === 'n' ? psd : undefined,
  }
}

/** @param name A-labels */
export async function walkDmarc(name: string, dns: Resolver): Promise<DmarcWalk> {
  const domain = name.toLowerCase()
  const records: { readonly domain: string; readonly record: DmarcRecord }[] = []
  let isUncertain = false
  for (const step of stepsOf(domain)) {
    const answer = await dns.txt(`_dmarc.${step}`)
    if (answer.kind === 'unavailable') isUncertain = true
    if (answer.kind !== 'found') continue
    const [record, second] = answer.records.flatMap(text => readDmarcRecord(text) ?? [])
    // Several records count as none (RFC 7489 §6.6.3).
    if (!record || second) continue
    records.push({ domain: step, record })
    if (record.psd === 'n' || (record.psd === 'y' && step !== domain)) break
  }
  return {
    domain,
    found: records[0],
    organizationalDomain: organizationalDomainOf(domain, records),
    isUncertain,
  }
}

/** The name, then its parents; of a long name, labels in between are left out (DMARCbis §4.10). Top-level domains are not asked. */
function stepsOf(domain: string): string[] {
  const labels = domain.split('.')
  const parents: string[] = []
  const first = labels.length > MAX_STEPS ? labels.length - MAX_STEPS + 1 : 1
  for (let from = first; from < labels.length - 1; from += 1) parents.push(labels.slice(from).join('.'))
  return [domain, ...parents]
}

/** DMARCbis §4.10.2. */
function organizationalDomainOf(
  domain: string,
  records: readonly { readonly domain: string; readonly record: DmarcRecord }[],
): string {
  const last = records.at(-1)
  if (!last) return domain
  if (last.record.psd !== 'y') return last.domain
  // One label below the public suffix.
  return domain
    .split('.')
    .slice(-(last.domain.split('.').length + 1))
    .join('.')
}

/** The policy that applies to mail from the walked domain; undefined without a record. */
export function policyOf({ domain, found }: DmarcWalk): DmarcPolicy | undefined {
  return found && (found.domain === domain ? found.record.policy : found.record.subdomainPolicy)
}

/** Whether a domain proven by DKIM or SPF speaks for the author's domain (RFC 7489 §3.1). */
export async function isAligned(
  author: DmarcWalk,
  proven: string,
  mode: AlignmentMode,
  dns: Resolver,
): Promise<boolean> {
  const name = proven.toLowerCase()
  if (name === author.domain) return true
  if (mode === 'strict') return false
  const other = await walkDmarc(name, dns)
  if (author.found || other.found) return other.organizationalDomain === author.organizationalDomain
  // Without any record no receiver looks; what is below the other is of the same owner in all but rare cases.
  return name.endsWith(`.${author.domain}`) || author.domain.endsWith(`.${name}`)
}
