/** IP addresses as text: version, equality, network membership. Text that is not an address has version 0. See also `address-kind.ts`. */
import { BlockList, isIP, SocketAddress } from 'node:net'
import type { Holder } from '../../core/holder.js'

export function ipVersion(text: string): 0 | 4 | 6 {
  const version = isIP(text)
  return version === 4 || version === 6 ? version : 0
}

/** A set of networks in CIDR notation. */
export class NetworkList {
  private readonly list = new BlockList()

  /** @param networks e.g. `192.168.7.0/24` or `2001:db8::/32` */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = '', prefix = ''] = network.split('/')
      this.list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4')
    }
  }

  contains(address: string): boolean {
    const version = ipVersion(address)
    return version !== 0 && this.list.check(address, version === 4 ? 'ipv4' : 'ipv6')
  }
}

/** Ignores spelling, e.g. `2001:db8::1` and `2001:DB8:0:0::1`. */
export function isSameAddress(one: string, other: string): boolean {
  return one === other || (ipVersion(one) !== 0 && canonical(one) === canonical(other))
}

function canonical(address: string): string {
  const version = ipVersion(address)
  if (version !== 6) return address
  return new SocketAddress({ address, family: 'ipv6' }).address
}

/** Parses `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1` or `[2001:db8::1]:53`. */
export function parseAddressAndPort(
  text: string,
  defaultPort: number,
): { address: string; port: number } | undefined {
  if (ipVersion(text) !== 0) return { address: text, port: defaultPort }
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text)
  const address = match?.[1] ?? match?.[2] ?? ''
  const port = Number(match?.[3] ?? defaultPort)
  return ipVersion(address) !== 0 && port >= 1 && port <= 65_535 ? { address, port } : undefined
}

/** Key for per-client limits: an IPv4 address, or the /64 that any IPv6 customer has at least (RFC 6177 §2). */
export function addressKey(given: string): string {
  // An IPv4 client of a dual-stack socket.
  const address = given.startsWith('::ffff:') ? given.slice(7) : given
  if (!address.includes(':')) return address
  // The zone (`fe80::1%eth0`) is not part of the client's identity.
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const rest = tail === '' ? [] : tail.split(':')
    // A trailing dotted IPv4 address counts as two groups.
    const held = groups.length + rest.length + (tail.includes('.') ? 1 : 0)
    for (let missing = 8 - held; missing > 0; missing--) groups.push('0')
    groups.push(...rest)
  }
  return `${groups
    .slice(0, 4)
    .map(group => group.toLowerCase().replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}

/** A client known by its address only: networks have equal shares, and so do the addresses of a network. */
export function addressHolder(address: string): Holder {
  const key = addressKey(address)
  return { owner: `network ${networkOf(key)}`, key }
}

/** @param key from `addressKey` @returns its IPv4 /24 or IPv6 /48, the usual minimum of a hosting provider or site */
export function networkOf(key: string): string {
  const isIpv6 = key.includes(':')
  return isIpv6 ? key.split(':').slice(0, 3).join(':') : key.slice(0, key.lastIndexOf('.'))
}
