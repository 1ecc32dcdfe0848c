/** Where the names of an address stand in DNS (RFC 1035 §3.5, RFC 3596 §2.5), and where lists of addresses have it. Pure. */
import { ipVersion } from '../net/ip-address.js'

/** @returns e.g. `25.2.0.192.in-addr.arpa`; undefined for what is no address */
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

/** Of an IPv4 address, as lists (RFC 5782 §2.1) are asked: `25.2.0.192`. */
export function reversedOctets(address: string): string {
  return address.split('.').reverse().join('.')
}

/** Of an IPv6 address: its 32 hexadecimal digits. */
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
