/**
 * Parser of PROXY protocol headers, versions 1 and 2, with which a load balancer says whose connection it forwards.
 *
 * Used by `proxy-protocol.ts`. Pure; works on what has arrived so far and never throws. Extensions (TLVs) are skipped unread.
 * Standard: "The PROXY protocol", HAProxy (doc/proxy-protocol.txt) §2.1, §2.2.
 */
import { SocketAddress } from 'node:net'
import { ipVersion } from './ip-address.js'

export interface Client {
  /** Canonical; never IPv4-mapped. */
  readonly address: string
  readonly port: number
}

/** `missing`: something else than a header arrived. */
export type HeaderFault = 'missing' | 'malformed' | 'too-long'

export type HeaderResult =
  | {
      readonly kind: 'header'
      /** Octets; what follows belongs to the next protocol. */
      readonly length: number
      /** Undefined if the header names nobody (health checks, families other than IP): the connection's own address counts. */
      readonly client: Client | undefined
    }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'fault'; readonly fault: HeaderFault }

/** §2.2. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
/** Signature, version and command, family and protocol, length. */
const FIXED_LENGTH = 16
/** Addresses and extensions. Real headers have a few hundred octets. */
const MAX_VARIABLE_LENGTH = 4_096

const VERSION = 2
const COMMAND = { local: 0, proxy: 1 } as const
/** The last is Unix sockets. */
const FAMILY = { unspecified: 0, ipv4: 1, ipv6: 2, unix: 3 } as const
const PROTOCOL = { unspecified: 0, stream: 1, datagram: 2 } as const
/** Octets of two addresses, with ports where the family has them. */
const ADDRESS_BLOCK: Readonly<Record<number, number>> = { 0: 0, 1: 12, 2: 36, 3: 216 }

/** §2.1. */
const PREFIX_1 = Buffer.from('PROXY ', 'latin1')
/** CRLF included. */
const MAX_LINE = 107
const CR = 13
const LF = 10

/** A header without addresses, as a load balancer begins its own connections with. */
export const LOCAL_HEADER = Buffer.concat([SIGNATURE, Buffer.of(VERSION << 4, 0, 0, 0)])

const INCOMPLETE: HeaderResult = { kind: 'incomplete' }
const fault = (kind: HeaderFault): HeaderResult => ({ kind: 'fault', fault: kind })

/** @param octets all that has arrived on the connection */
export function readProxyHeader(octets: Buffer): HeaderResult {
  if (startsLike(octets, SIGNATURE)) return readBinary(octets)
  if (startsLike(octets, PREFIX_1)) return readLine(octets)
  return fault('missing')
}

/** Whether one is the beginning of the other. */
function startsLike(octets: Buffer, start: Buffer): boolean {
  const length = Math.min(octets.length, start.length)
  return octets.subarray(0, length).equals(start.subarray(0, length))
}

function readBinary(octets: Buffer): HeaderResult {
  if (octets.length < FIXED_LENGTH) return INCOMPLETE
  const command = octets.readUInt8(12)
  const kind = octets.readUInt8(13)
  const variable = octets.readUInt16BE(14)
  const isLocal = command === ((VERSION << 4) | COMMAND.local)
  if (!isLocal && command !== ((VERSION << 4) | COMMAND.proxy)) return fault('malformed')
  const family = kind >> 4
  const protocol = kind & 0xf
  if (!isLocal && (family > FAMILY.unix || protocol > PROTOCOL.datagram)) return fault('malformed')
  const isStream = !isLocal && protocol === PROTOCOL.stream
  if (isStream && variable < (ADDRESS_BLOCK[family] ?? 0)) return fault('malformed')
  if (variable > MAX_VARIABLE_LENGTH) return fault('too-long')
  const length = FIXED_LENGTH + variable
  if (octets.length < length) return INCOMPLETE
  return { kind: 'header', length, client: isStream ? clientIn(octets, family) : undefined }
}

/** Source and destination address, then source and destination port. */
function clientIn(octets: Buffer, family: number): Client | undefined {
  if (family === FAMILY.ipv4)
    return {
      address: octets.subarray(FIXED_LENGTH, FIXED_LENGTH + 4).join('.'),
      port: octets.readUInt16BE(FIXED_LENGTH + 8),
    }
  if (family !== FAMILY.ipv6) return undefined
  const groups = Array.from({ length: 8 }, (_, at) => octets.readUInt16BE(FIXED_LENGTH + 2 * at).toString(16))
  return { address: canonical(groups.join(':')), port: octets.readUInt16BE(FIXED_LENGTH + 32) }
}

function readLine(octets: Buffer): HeaderResult {
  const lf = octets.subarray(0, MAX_LINE).indexOf(LF)
  if (lf === -1) return octets.length < MAX_LINE ? INCOMPLETE : fault('too-long')
  if (octets[lf - 1] !== CR) return fault('malformed')
  const length = lf + 1
  const [, family = '', ...rest] = octets.toString('latin1', 0, lf - 1).split(' ')
  // The rest of the line must be ignored.
  if (family === 'UNKNOWN') return { kind: 'header', length, client: undefined }
  const version = family === 'TCP4' ? 4 : family === 'TCP6' ? 6 : undefined
  const [source = '', destination = '', sourcePort, destinationPort] = rest
  const isAddress = (text: string) => ipVersion(text) === version && !text.includes('%')
  const port = portOf(sourcePort)
  const isValid =
    rest.length === 4 &&
    isAddress(source) &&
    isAddress(destination) &&
    port !== undefined &&
    portOf(destinationPort) !== undefined
  return isValid
    ? { kind: 'header', length, client: { address: canonical(source), port } }
    : fault('malformed')
}

/** Decimal without leading zeros. */
function portOf(text = ''): number | undefined {
  const port = /^(?:0|[1-9]\d{0,4})$/.test(text) ? Number(text) : 65_536
  return port > 65_535 ? undefined : port
}

function canonical(address: string): string {
  if (ipVersion(address) !== 6) return address
  const text = new SocketAddress({ address, family: 'ipv6' }).address
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/.test(text) ? text.slice(7) : text
}
