/**
 * Egress policy: which addresses and URLs this server may connect to when DNS or a client names them.
 *
 * The dialler and the HTTP client check every address immediately before dialling it, so no caller can skip the check and no second
 * lookup can change the answer. Hosts named by the operator (`namedBy: 'operator'`) are exempt.
 * Standards: WHATWG URL §3.5 (hosts), WHATWG Fetch §2.9 (bad ports), RFC 6761 §6.3 (localhost).
 * Never throws, except `assertAllowed`.
 */
import { describeError } from '../../core/errors.js'
import { addressKind } from './address-kind.js'
import { NetworkList, ipVersion } from './ip-address.js'

export interface EgressPolicy {
  /** @returns why the address is refused, completing "the address ..."; undefined if allowed */
  refusal(address: string): string | undefined
}

/** Who named the host to connect to. Absent: DNS or a client. */
export interface Named {
  readonly namedBy?: 'operator'
}

/** Hosts of the public Internet only. */
export const PUBLIC_ONLY: EgressPolicy = {
  refusal(address) {
    const kind = addressKind(address)
    return kind === 'public' ? undefined : phrase(kind)
  },
}

/** Also private networks and this machine; only multicast and invalid addresses are refused. */
export const PRIVATE_ALLOWED: EgressPolicy = {
  refusal(address) {
    const kind = addressKind(address)
    return kind === 'multicast' || kind === 'invalid' ? phrase(kind) : undefined
  },
}

/**
 * The public Internet plus the listed networks.
 *
 * An address that embeds an IPv4 address (NAT64, 6to4) matches only if the embedding address itself is listed: we cannot tell which
 * host the translator would reach.
 *
 * @param networks in CIDR notation
 */
export function egressPolicyAllowing(networks: readonly string[]): EgressPolicy {
  const listed = new NetworkList(networks)
  return {
    refusal: address =>
      PRIVATE_ALLOWED.refusal(address) ??
      (listed.contains(address) ? undefined : PUBLIC_ONLY.refusal(address)),
  }
}

/** @param allowPrivate whether private networks belong to the operator, so DNS may point into them */
export function egressPolicyFor({ allowPrivate }: { readonly allowPrivate: boolean }): EgressPolicy {
  return allowPrivate ? PRIVATE_ALLOWED : PUBLIC_ONLY
}

/**
 * An address that must not be dialled. The message is shown to workspaces and names no address, or they could resolve names of internal
 * networks. `detail` is for the operator.
 */
export class EgressError extends Error {
  readonly code = 'EADDRNOTPUBLIC'
  readonly detail: string

  constructor(detail: string) {
    super('the address is not allowed: it is not public')
    this.detail = detail
  }
}

/** For the operator only: with the address, if one was refused. */
export function describeRefusal(thrown: unknown): string {
  return thrown instanceof EgressError ? thrown.detail : describeError(thrown)
}

/** @throws EgressError */
export function assertAllowed(egress: EgressPolicy, { namedBy }: Named, address: string): void {
  const refusal = namedBy === 'operator' ? undefined : egress.refusal(address)
  if (refusal === undefined) return
  throw new EgressError(`the address ${address} ${refusal}`)
}

function phrase(kind: string): string {
  return kind === 'invalid' ? 'is not a valid IP address' : `is not public (${kind})`
}

/** Ports of other protocols that an HTTP request could be smuggled into; browsers block the same list (WHATWG Fetch "bad port"). */
const BAD_PORTS: ReadonlySet<number> = new Set([
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

/** Never looked up in DNS (RFC 6761 §6.3). */
export const LOCALHOST_ADDRESSES: readonly string[] = ['127.0.0.1', '::1']

/**
 * Checks scheme, port and credentials, whatever the host resolves to. IPv4 notations (decimal, octal, hexadecimal, shortened) need no
 * check: the URL parser normalizes them.
 *
 * @returns completes "the URL ..."; undefined if it may be called
 */
export function findTargetFault(url: string): string | undefined {
  if (!URL.canParse(url)) return 'is not an absolute URL'
  const { protocol, username, password, port, hostname } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') return 'is neither http nor https'
  if (username !== '' || password !== '') return 'contains a user name or password'
  if (port !== '' && BAD_PORTS.has(Number(port)))
    return `uses port ${port}, which belongs to another protocol`
  return hostOf(hostname) === '' ? 'has no host' : undefined
}

/** Also checks the host if it is an address or localhost; never queries DNS. */
export function findEgressFault(url: string, egress: EgressPolicy): string | undefined {
  const fault = findTargetFault(url)
  if (fault !== undefined) return fault
  const host = hostOf(new URL(url).hostname)
  const addresses = isLocalhost(host) ? LOCALHOST_ADDRESSES : ipVersion(host) === 0 ? [] : [host]
  const refusals = addresses.map(address => egress.refusal(address))
  const [first] = refusals
  return first !== undefined && refusals.every(refusal => refusal !== undefined)
    ? `points to an address that ${first}`
    : undefined
}

/** Without IPv6 brackets and the trailing dot. */
export function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

export function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost')
}
