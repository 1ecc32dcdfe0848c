/**
 * Resolves a mail host to its addresses, in dialling order.
 *
 * Never rejects.
 */
import type { Resolver } from '../../world/dns/dns.js'
import { ipVersion } from '../../world/net/ip-address.js'

export interface HostAddresses {
  readonly host: string
  readonly addresses: readonly string[]
  /** DNS error; there may be more addresses than those listed. */
  readonly problem?: string
}

/** Addresses tried per host, so that one host cannot use up the attempt. */
const MAX_ADDRESSES = 4

export async function resolveHost(resolver: Resolver, host: string): Promise<HostAddresses> {
  const [ipv6, ipv4] = await Promise.all([resolver.ipv6(host), resolver.ipv4(host)])
  const addresses = interleave(
    [ipv6, ipv4].flatMap(answer => (answer.kind === 'found' ? answer.records : [])),
  )
  const failed = [ipv6, ipv4].find(answer => answer.kind === 'unavailable')
  return { host, addresses, ...(failed?.kind === 'unavailable' ? { problem: failed.reason } : {}) }
}

/** Alternates IPv6 and IPv4, so that if one family does not work from here the second address dialled is of the other (RFC 5321 §5.2). */
export function interleave(addresses: readonly string[]): string[] {
  const ipv6 = addresses.filter(address => ipVersion(address) === 6)
  const ipv4 = addresses.filter(address => ipVersion(address) === 4)
  const rounds = Math.max(ipv6.length, ipv4.length)
  return Array.from({ length: rounds }, (_, round) => [ipv6[round], ipv4[round]])
    .flat()
    .filter(address => address !== undefined)
    .slice(0, MAX_ADDRESSES)
}
