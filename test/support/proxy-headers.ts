/** PROXY protocol headers as a load balancer sends them, written out octet by octet. */
import { isIPv6 } from 'node:net'

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

export interface BinaryHeader {
  /** Version and command; default 0x21: version 2, PROXY. */
  readonly command?: number
  /** Family and protocol; default TCP over the family of the source. */
  readonly kind?: number
  /** Addresses and ports. */
  readonly block?: Buffer
  readonly extensions?: Buffer
  /** Default: of block and extensions. */
  readonly length?: number
}

export function binaryHeader({
  command = 0x21,
  kind = 0x11,
  block = Buffer.alloc(0),
  extensions = Buffer.alloc(0),
  length = block.length + extensions.length,
}: BinaryHeader): Buffer {
  const fixed = Buffer.of(command, kind, length >> 8, length & 0xff)
  return Buffer.concat([SIGNATURE, fixed, block, extensions])
}

/** @param source in full: IPv4, or IPv6 with eight groups */
export function headerOf(source: string, port: number, extensions = Buffer.alloc(0)): Buffer {
  const kind = isIPv6(source) ? 0x21 : 0x11
  const [from, to] = kind === 0x21 ? [groups(source), Buffer.alloc(16)] : [octets(source), Buffer.alloc(4)]
  const ports = Buffer.of(port >> 8, port & 0xff, 0, 25)
  return binaryHeader({ kind, block: Buffer.concat([from, to, ports]), extensions })
}

/** What a load balancer begins its health checks with. */
export const LOCAL = binaryHeader({ command: 0x20, kind: 0 })

function octets(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number))
}

function groups(address: string): Buffer {
  return Buffer.from(
    address
      .split(':')
      .map(group => group.padStart(4, '0'))
      .join(''),
    'hex',
  )
}
