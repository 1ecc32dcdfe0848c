/**
 * Classifies the addresses the server accepts mail for itself.
 *
 * Pure: tokens are verified elsewhere. Standards: RFC 5321 §4.5.1 (postmaster, with and without a domain), RFC 2142
 * (postmaster, abuse).
 */
import { asciiDomain } from '../mail/address.js'
import { parseReturnPathLocal, type ReturnPathToken } from '../mail/return-path.js'
import {
  parseUnsubscribeToken,
  UNSUBSCRIBE_PREFIX,
  type UnsubscribeToken,
} from '../mail/unsubscribe-token.js'

/**
 * `return_path`: bounces. `feedback`: complaints of a feedback loop. `reports`: DMARC and TLS reports. `contact`:
 * postmaster and abuse.
 */
export type Purpose = 'return_path' | 'unsubscribe' | 'feedback' | 'reports' | 'contact'

export interface InboundDomains {
  readonly hostname: string
  readonly returnPathDomain: string
  /** Where DMARC records ask for reports; default: the hostname. */
  readonly reportDomain?: string
  /** Of all nodes; each receives mail for the others. */
  readonly nodeNames?: readonly string[]
  /**
   * Names that nodes of this database have or had, in lower case. Bounces and reports that are sent to them may still arrive; all else may
   * belong to whoever has such a name today.
   */
  readonly published?: ReadonlySet<string>
}

/** `foreign`: not one of our domains. `unknown`: our domain, but no such mailbox. */
export type InboundAddress =
  | { readonly kind: 'return_path'; readonly token: ReturnPathToken }
  | { readonly kind: 'unsubscribe'; readonly token: UnsubscribeToken }
  | { readonly kind: 'feedback' | 'reports' | 'contact' | 'unknown' | 'foreign' }

const ROLES: ReadonlyMap<string, 'feedback' | 'reports' | 'contact'> = new Map([
  ['fbl', 'feedback'],
  ['dmarc', 'reports'],
  ['tlsrpt', 'reports'],
  ['postmaster', 'contact'],
  ['abuse', 'contact'],
])

const UNKNOWN = { kind: 'unknown' } as const
const FOREIGN = { kind: 'foreign' } as const

/** @param address as in RCPT: `local@domain`, or a bare `postmaster` */
export function readInboundAddress(address: string, domains: InboundDomains): InboundAddress {
  const at = address.lastIndexOf('@')
  const local = (at < 0 ? address : address.slice(0, at)).toLowerCase()
  if (at < 0) return local === 'postmaster' ? { kind: 'contact' } : UNKNOWN
  const domain = asciiDomain(address.slice(at + 1), { allowSingleLabel: true })
  const isPublished = domain !== undefined && domains.published?.has(domain) === true
  const isOwn = domain !== undefined && isOwnDomain(domain, domains)
  const other = isOwn ? UNKNOWN : FOREIGN
  if (!isOwn && !isPublished) return FOREIGN
  if (local.startsWith(UNSUBSCRIBE_PREFIX)) {
    const token = parseUnsubscribeToken(local.slice(UNSUBSCRIBE_PREFIX.length))
    return token ? { kind: 'unsubscribe', token } : other
  }
  const role = ROLES.get(local)
  if (role !== undefined) return isOwn || role !== 'contact' ? { kind: role } : FOREIGN
  const token = isPublished || domain === domains.returnPathDomain ? parseReturnPathLocal(local) : undefined
  return token ? { kind: 'return_path', token } : other
}

/** @param domain in lower case */
export function isOwnDomain(
  domain: string,
  { hostname, returnPathDomain, reportDomain, nodeNames = [] }: InboundDomains,
): boolean {
  return [hostname, returnPathDomain, reportDomain, ...nodeNames].includes(domain)
}
