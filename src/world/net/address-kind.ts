/**
 * Classifies IP addresses: public, or one of the special-purpose ranges. Pure.
 *
 * Standards: RFC 6890 and its registries (special-purpose addresses), RFC 4291 §2.5.5.2 (IPv4-mapped), RFC 6052, RFC 8215
 * (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo), RFC 6598 (embeddings' NAT), RFC 4193 (unique local).
 * Text that is not an IP address is `invalid`.
 */
import { ipVersion } from './ip-address.js'

/**
 * `loopback` includes the unspecified address, which also leads to this machine. `reserved` is everything set aside for other uses than
 * public hosts. Documentation addresses count as `public`: nobody uses them.
 */
export type AddressKind =
  | 'public'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'carrier NAT'
  | 'cloud metadata'
  | 'multicast'
  | 'reserved'
  | 'invalid'

/** The first match wins. */
const IPV4_KINDS: readonly (readonly [prefix: string, kind: AddressKind])[] = [
  ['0.0.0.0/8', 'loopback'],
  ['127.0.0.0/8', 'loopback'],
  ['10.0.0.0/8', 'private'],
  ['172.16.0.0/12', 'private'],
  ['192.168.0.0/16', 'private'],
  ['169.254.0.0/16', 'link-local'],
  ['100.64.0.0/10', 'carrier NAT'],
  // Metadata services of two cloud providers, in no registry.
  ['168.63.129.16/32', 'cloud metadata'],
  ['192.0.0.192/32', 'cloud metadata'],
  // Anycast addresses of RFC 7723 and RFC 8155; the rest of the block is not globally reachable.
  ['192.0.0.9/32', 'public'],
  ['192.0.0.10/32', 'public'],
  ['192.0.0.0/24', 'reserved'],
  ['192.88.99.0/24', 'reserved'],
  ['198.18.0.0/15', 'reserved'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['0.0.0.0/0', 'public'],
]

const IPV6_KINDS: readonly (readonly [prefix: string, kind: AddressKind])[] = [
  ['::/127', 'loopback'],
  ['fc00::/7', 'private'],
  ['fec0::/10', 'private'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
  // Local-use NAT64 (RFC 8215): the mapping is unknown.
  ['64:ff9b:1::/48', 'private'],
  // Globally reachable parts of the protocol assignments block: anycast (RFC 7723, RFC 8155), AMT, AS112.
  ['2001:1::1/128', 'public'],
  ['2001:1::2/128', 'public'],
  ['2001:3::/32', 'public'],
  ['2001:4:112::/48', 'public'],
  ['2001::/23', 'reserved'],
  // RFC 4291 §2.4: allocated global unicast.
  ['2000::/3', 'public'],
  ['::/0', 'reserved'],
]

/** IPv6 prefixes that embed an IPv4 address, which decides: its offset, and whether its bits are inverted. */
const EMBEDDINGS: readonly { readonly prefix: string; readonly at: number; readonly isInverted?: true }[] = [
  { prefix: '::ffff:0:0/96', at: 12 },
  { prefix: '::ffff:0:0:0/96', at: 12 },
  { prefix: '64:ff9b::/96', at: 12 },
  { prefix: '2002::/16', at: 2 },
  { prefix: '2001::/32', at: 12, isInverted: true },
]

type Octets = readonly number[]

interface Prefix {
  readonly octets: Octets
  readonly bits: number
}

const ipv4Kinds = IPV4_KINDS.map(([prefix, kind]) => ({ ...readPrefix(prefix), kind }))
const ipv6Kinds = IPV6_KINDS.map(([prefix, kind]) => ({ ...readPrefix(prefix), kind }))
const embeddings = EMBEDDINGS.map(({ prefix, ...embedding }) => ({ ...readPrefix(prefix), ...embedding }))

/** @param address an IPv6 zone (`%eth0`) is ignored */
export function addressKind(address: string): AddressKind {
  const octets = octetsOf(address)
  if (octets === undefined) return 'invalid'
  if (octets.length === 4) return kindIn(ipv4Kinds, octets)
  const carrier = embeddings.find(each => isWithin(octets, each))
  if (carrier === undefined) return kindIn(ipv6Kinds, octets)
  const carried = octets.slice(carrier.at, carrier.at + 4)
  return kindIn(ipv4Kinds, carrier.isInverted ? carried.map(octet => 255 - octet) : carried)
}

export function isLoopbackOrUnspecified(address: string): boolean {
  return addressKind(address) === 'loopback'
}

function kindIn(kinds: readonly (Prefix & { readonly kind: AddressKind })[], octets: Octets): AddressKind {
  return kinds.find(prefix => isWithin(octets, prefix))?.kind ?? 'reserved'
}

function isWithin(octets: Octets, { octets: prefix, bits }: Prefix): boolean {
  return prefix.every((octet, index) => {
    const left = Math.min(8, Math.max(0, bits - 8 * index))
    return ((octet ^ (octets[index] ?? 0)) & (0xff00 >> left) & 0xff) === 0
  })
}

function readPrefix(text: string): Prefix {
  const [address = '', bits = ''] = text.split('/')
  return { octets: octetsOf(address) ?? [], bits: Number(bits) }
}

/** @returns 4 or 16 octets */
function octetsOf(text: string): Octets | undefined {
  const version = ipVersion(text)
  if (version === 0) return undefined
  return version === 4 ? text.split('.').map(Number) : ipv6Octets(text.split('%', 1)[0] ?? '')
}

/** Parses RFC 4291 §2.2 text. */
function ipv6Octets(text: string): Octets {
  const [before = '', after] = text.split('::')
  const head = groupOctets(before)
  const tail = groupOctets(after ?? '')
  return [...head, ...Array.from({ length: 16 - head.length - tail.length }, () => 0), ...tail]
}

function groupOctets(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap(group => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}
