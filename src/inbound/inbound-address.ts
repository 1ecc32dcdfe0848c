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
  /** Of all nodes; each receives mail for the others. */
  readonly nodeNames?: readonly string[]
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

/** @param address as in RCPT: `local@domain`, or a bare `postmaster` */
export function readInboundAddress(address: string, domains: InboundDomains): InboundAddress {
  const at = address.lastIndexOf('@')
  const local = (at < 0 ? address : address.slice(0, at)).toLowerCase()
  if (at < 0) return local === 'postmaster' ? { kind: 'contact' } : UNKNOWN
  const domain = asciiDomain(address.slice(at + 1), { allowSingleLabel: true })
  if (domain === undefined || !isOwnDomain(domain, domains)) return { kind: 'foreign' }
  if (local.startsWith(UNSUBSCRIBE_PREFIX)) {
    const token = parseUnsubscribeToken(local.slice(UNSUBSCRIBE_PREFIX.length))
    return token ? { kind: 'unsubscribe', token } : UNKNOWN
  }
  const role = ROLES.get(local)
  if (role !== undefined) return { kind: role }
  const token = domain === domains.returnPathDomain ? parseReturnPathLocal(local) : undefined
  return token ? { kind: 'return_path', token } : UNKNOWN
}

/** @param domain in lower case */
export function isOwnDomain(
  domain: string,
  { hostname, returnPathDomain, nodeNames = [] }: InboundDomains,
): boolean {
  return domain === hostname || domain === returnPathDomain || nodeNames.includes(domain)
}
