/** Reverse DNS names of addresses (RFC 1035 §3.5, RFC 3596 §2.5), also used by DNS blocklists. */
import { ipVersion } from '../net/ip-address.js'

/** @returns e.g. `25.2.0.192.in-addr.arpa`; undefined if not an address */
export function reverseName(address: string): string | undefined {
  switch (ipVersion(address)) {
    case 4:
      return `${reversedOctets(address)}.in-addr.arpa`
    case 6:
      return `${nibbles(address).reverse().join('.')}.ip6.arpa`
    default:
      return undefined
  }
}

/** `192.0.2.25` as queried in blocklists (RFC 5782 §2.1): `25.2.0.192`. */
export function reversedOctets(address: string): string {
  return address.split('.').reverse().join('.')
}

export function nibbles(address: string): string[] {
  const [written = ''] = address.split('%', 1)
  const [head = '', tail] = written.toLowerCase().split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const missing = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array<string>(missing).fill('0'), ...after].flatMap(group =>
    Array.from(group.padStart(4, '0')),
  )
}
