/**
 * Which addresses inbound mail is taken for, and what each one is for.
 *
 * Called by the receiver for each RCPT. Pure: whether a token is one of ours is found out elsewhere.
 * Standards: RFC 5321 §4.5.1 (postmaster, with and without a domain), RFC 2142 (postmaster, abuse).
 * Fails: never throws.
 */
import { asciiDomain } from '../../mail/address.js'
import { parseReturnPathLocal, type ReturnPathToken } from '../../mail/return-path.js'
import {
  parseUnsubscribeToken,
  UNSUBSCRIBE_PREFIX,
  type UnsubscribeToken,
} from '../../mail/unsubscribe-token.js'

/**
 * `return_path`: bounces. `feedback`: complaints of a feedback loop. `reports`: DMARC and TLS reports. `contact`: mail to a
 * person, postmaster or abuse.
 */
export type Purpose = 'return_path' | 'unsubscribe' | 'feedback' | 'reports' | 'contact'

export interface InboundDomains {
  /** `hostname`. */
  readonly hostname: string
  /** `mta.return_path_domain`. */
  readonly returnPathDomain: string
}

/** `foreign`: mail for it is somebody else's to take; `unknown`: our domain, but nobody of that name. */
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

/** @param address `local@domain` as given in RCPT, or a bare `postmaster` */
export function readInboundAddress(
  address: string,
  { hostname, returnPathDomain }: InboundDomains,
): InboundAddress {
  const at = address.lastIndexOf('@')
  const local = (at < 0 ? address : address.slice(0, at)).toLowerCase()
  if (at < 0) return local === 'postmaster' ? { kind: 'contact' } : UNKNOWN
  const domain = asciiDomain(address.slice(at + 1), { allowSingleLabel: true })
  if (domain === undefined || (domain !== hostname && domain !== returnPathDomain)) return { kind: 'foreign' }
  if (local.startsWith(UNSUBSCRIBE_PREFIX)) {
    const token = parseUnsubscribeToken(local.slice(UNSUBSCRIBE_PREFIX.length))
    return token ? { kind: 'unsubscribe', token } : UNKNOWN
  }
  const role = ROLES.get(local)
  if (role !== undefined) return { kind: role }
  const token = domain === returnPathDomain ? parseReturnPathLocal(local) : undefined
  return token ? { kind: 'return_path', token } : UNKNOWN
}
