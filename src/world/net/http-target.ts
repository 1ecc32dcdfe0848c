/**
 * Which URLs of strangers are called at all, whatever they resolve to: scheme, port, no credentials.
 *
 * Asked by the HTTP client for every request that the operator did not name, and by whoever takes such a URL, so that its owner is
 * told at once. Notations need no care here: the URL parser turns every way of writing an IPv4 address (decimal, octal,
 * hexadecimal, shortened, full-width digits, a dot at the end) into the usual one before anybody looks at it.
 * Standards: WHATWG URL §3.5 (hosts), WHATWG Fetch §2.9 (ports that other protocols own), RFC 6761 §6.3 (localhost).
 * Fails: never; a fault is a phrase that completes "the URL ...".
 */
import { ipVersion } from './ip-address.js'
import type { Reach } from './reach.js'

/** Ports of protocols that could take a request for one of their own (WHATWG Fetch, "bad port"), as browsers refuse them. */
const FOREIGN_PORTS: ReadonlySet<number> = new Set([
  ...[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104,
  ],
  ...[
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526,
  ],
  ...[
    530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659,
  ],
  ...[4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
])

/** Of this machine, whatever a name server says (RFC 6761 §6.3). */
export const LOCALHOST_ADDRESSES: readonly string[] = ['127.0.0.1', '::1']

/** @returns what is wrong with it, e.g. `has a user name or password in it` */
export function targetFault(url: string): string | undefined {
  if (!URL.canParse(url)) return 'is not an absolute URL'
  const { protocol, username, password, port, hostname } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') return 'is neither http nor https'
  if (username !== '' || password !== '') return 'has a user name or password in it'
  if (port !== '' && FOREIGN_PORTS.has(Number(port))) return `has a port of another protocol (${port})`
  return hostOf(hostname) === '' ? 'has no host' : undefined
}

/** The same, and what can be said of its host without asking DNS. */
export function reachableTargetFault(url: string, reach: Reach): string | undefined {
  const fault = targetFault(url)
  if (fault !== undefined) return fault
  const host = hostOf(new URL(url).hostname)
  const addresses = isLocalhost(host) ? LOCALHOST_ADDRESSES : ipVersion(host) === 0 ? [] : [host]
  const refusals = addresses.map(address => reach.refusal(address))
  const [first] = refusals
  return first !== undefined && refusals.every(refusal => refusal !== undefined)
    ? `leads to an address that ${first}`
    : undefined
}

/** As it is looked up and dialled: without brackets and without the dot of the root. */
export function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

export function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}
