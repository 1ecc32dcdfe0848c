/**
 * A DNS question off the wire, as an authoritative server has to read it: header, one question, EDNS.
 *
 * Called by `name-server.ts`, with what strangers sent. Reads nothing twice and follows no compression, which no question needs; the
 * octets of the question are kept, so that the answer repeats them as they came (letters of either case: draft-vixie-dnsext-dns0x20).
 * Standards: RFC 1035 §4.1 (format), RFC 9619 (one question), RFC 6891 §6.1 (OPT).
 * Fails: never throws, whatever the octets.
 */

export interface Query {
  readonly kind: 'query'
  readonly id: number
  /** Recursion desired, checking disabled: given back as they came (RFC 1035 §4.1.1, RFC 4035 §3.2.2). */
  readonly echoedFlags: number
  /** In lower case, octets as latin1; the root has none. */
  readonly labels: readonly string[]
  readonly type: number
  readonly class: number
  /** The question section as it came. */
  readonly question: Buffer
  readonly edns: Edns | undefined
}

export interface Edns {
  /** Octets of UDP that its sender takes; at least 512 (RFC 6891 §6.2.3). */
  readonly payload: number
  readonly version: number
  readonly isDnssecOk: boolean
}

/** Nobody to answer, or an answer without a question in it. */
export type Unreadable =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'fault'; readonly id: number; readonly echoedFlags: number; readonly code: number }

export const CODE = {
  formatError: 1,
  serverFailure: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
} as const

export const TYPE = { ns: 2, soa: 6, hinfo: 13, txt: 16, opt: 41, any: 255 } as const
export const CLASS_INTERNET = 1

const HEADER_OCTETS = 12
const RESPONSE = 0x8000
const OPCODE = 0x7800
const ECHOED = 0x7910 // opcode, RD, CD
const LONGEST_NAME = 255
/** A client's question carries an OPT, sometimes a signature; who sends more wants something else. */
const MOST_ADDITIONALS = 4
const DNSSEC_OK = 0x8000

export function readQuery(message: Buffer): Query | Unreadable {
  if (message.length < HEADER_OCTETS) return { kind: 'nothing' }
  const [id, flags] = [message.readUInt16BE(0), message.readUInt16BE(2)]
  // An answer to an answer goes on for ever.
  if ((flags & RESPONSE) !== 0) return { kind: 'nothing' }
  const echoedFlags = flags & ECHOED
  const fault = (code: number): Unreadable => ({ kind: 'fault', id, echoedFlags, code })
  if ((flags & OPCODE) !== 0) return fault(CODE.notImplemented)
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map(at => message.readUInt16BE(at))
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additionals ?? 0) > MOST_ADDITIONALS)
    return fault(CODE.formatError)
  const name = readName(message, HEADER_OCTETS)
  if (!name || name.end + 4 > message.length) return fault(CODE.formatError)
  const end = name.end + 4
  const edns = readEdns(message, end, additionals ?? 0)
  if (edns === 'malformed') return fault(CODE.formatError)
  return {
    kind: 'query',
    id,
    echoedFlags,
    labels: name.labels,
    type: message.readUInt16BE(name.end),
    class: message.readUInt16BE(name.end + 2),
    question: message.subarray(HEADER_OCTETS, end),
    edns,
  }
}

/** @returns undefined for what is cut off, too long or compressed */
function readName(message: Buffer, start: number): { labels: string[]; end: number } | undefined {
  const labels: string[] = []
  for (let at = start; at < message.length && at - start < LONGEST_NAME;) {
    const length = message[at] ?? 0
    if (length === 0) return { labels, end: at + 1 }
    if (length > 63 || at + 1 + length > message.length) return undefined
    labels.push(lowerCase(message.toString('latin1', at + 1, at + 1 + length)))
    at += 1 + length
  }
  return undefined
}

/** A to Z alone (RFC 4343 §3): other octets are no letters here. */
function lowerCase(label: string): string {
  return label.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

function readEdns(message: Buffer, start: number, count: number): Edns | 'malformed' | undefined {
  let edns: Edns | undefined
  let at = start
  for (let index = 0; index < count; index++) {
    const name = skipName(message, at)
    if (name === undefined || name + 10 > message.length) return 'malformed'
    const end = name + 10 + message.readUInt16BE(name + 8)
    if (end > message.length) return 'malformed'
    if (message.readUInt16BE(name) === TYPE.opt) {
      // RFC 6891 §6.1.1: one at most, and at the root.
      if (edns || message[at] !== 0) return 'malformed'
      edns = {
        payload: Math.max(512, message.readUInt16BE(name + 2)),
        version: message[name + 5] ?? 0,
        isDnssecOk: (message.readUInt16BE(name + 6) & DNSSEC_OK) !== 0,
      }
    }
    at = end
  }
  return edns
}

/** @returns where what follows the name begins */
function skipName(message: Buffer, start: number): number | undefined {
  for (let at = start; at < message.length;) {
    const length = message[at] ?? 0
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    if (length > 63) return undefined
    at += 1 + length
  }
  return undefined
}
