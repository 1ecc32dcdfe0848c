/**
 * DNS wire format for an authoritative server: parses queries, writes answers.
 *
 * Queries come from the network; parsing never throws and follows no compression pointers, which queries do not need. The question
 * section is echoed octet for octet, so that clients that randomize its case can check it (draft-vixie-dnsext-dns0x20), and owner names
 * in answers point into it.
 * Standards: RFC 1035 §4.1 (format), §3.3.14 (strings of 255 octets), RFC 9619 (one question), RFC 6891 §6.1 (OPT), RFC 8482 §4.2 (ANY).
 */

export interface Query {
  readonly kind: 'query'
  readonly id: number
  /** RD and CD, copied into the answer (RFC 1035 §4.1.1, RFC 4035 §3.2.2). */
  readonly echoedFlags: number
  /** Lower case, octets as latin1; empty for the root. */
  readonly labels: readonly string[]
  readonly type: number
  readonly class: number
  /** The question section, unchanged. */
  readonly question: Buffer
  readonly edns: Edns | undefined
}

interface Edns {
  /** UDP payload size of the client; at least 512 (RFC 6891 §6.2.3). */
  readonly payload: number
  readonly version: number
  readonly isDnssecOk: boolean
}

/** A packet to ignore, or one answered without its question. */
export type Unreadable =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'fault'; readonly id: number; readonly echoedFlags: number; readonly code: number }

export const RCODE = {
  formatError: 1,
  serverFailure: 2,
  nxDomain: 3,
  notImplemented: 4,
  refused: 5,
} as const

export const TYPE = { ns: 2, soa: 6, hinfo: 13, txt: 16, opt: 41, any: 255 } as const
export const CLASS_INTERNET = 1

const HEADER_OCTETS = 12
const RESPONSE = 0x8000
const OPCODE = 0x7800
/** Opcode, RD and CD. */
const ECHOED = 0x7910
const MAX_NAME = 255
/** A query has an OPT record and perhaps a signature. */
const MAX_ADDITIONALS = 4
const DNSSEC_OK = 0x8000

export function parseQuery(message: Buffer): Query | Unreadable {
  if (message.length < HEADER_OCTETS) return { kind: 'nothing' }
  const [id, flags] = [message.readUInt16BE(0), message.readUInt16BE(2)]
  // Answering responses could loop forever.
  if ((flags & RESPONSE) !== 0) return { kind: 'nothing' }
  const echoedFlags = flags & ECHOED
  const fault = (code: number): Unreadable => ({ kind: 'fault', id, echoedFlags, code })
  if ((flags & OPCODE) !== 0) return fault(RCODE.notImplemented)
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map(at => message.readUInt16BE(at))
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additionals ?? 0) > MAX_ADDITIONALS)
    return fault(RCODE.formatError)
  const name = readName(message, HEADER_OCTETS)
  if (!name || name.end + 4 > message.length) return fault(RCODE.formatError)
  const end = name.end + 4
  const edns = readEdns(message, end, additionals ?? 0)
  if (edns === 'malformed') return fault(RCODE.formatError)
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

/** @returns undefined if truncated, too long or compressed */
function readName(message: Buffer, start: number): { labels: string[]; end: number } | undefined {
  const labels: string[] = []
  for (let at = start; at < message.length && at - start < MAX_NAME;) {
    const length = message[at] ?? 0
    if (length === 0) return { labels, end: at + 1 }
    if (length > 63 || at + 1 + length > message.length) return undefined
    labels.push(lowerCase(message.toString('latin1', at + 1, at + 1 + length)))
    at += 1 + length
  }
  return undefined
}

/** A to Z only (RFC 4343 §3). */
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
      // RFC 6891 §6.1.1: at most one, with the root as owner.
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

/** @returns the offset after the name */
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

export interface ResourceRecord {
  readonly type: number
  /** Seconds. */
  readonly ttl: number
  readonly octets: Buffer
}

export interface Answer {
  /** 12 bits: values above 15 need EDNS (RFC 6891 §6.1.3). */
  readonly code: number
  readonly isAuthoritative: boolean
  /** Owned by the queried name. */
  readonly answers?: readonly ResourceRecord[]
  /** Owned by the apex. */
  readonly authority?: ResourceRecord
}

const AUTHORITATIVE = 0x0400
const TRUNCATED = 0x0200
/** Recommended by DNS flag day 2020; passes unfragmented. */
export const UDP_PAYLOAD = 1_232
const MAX_STRING = 255

/**
 * @param zoneLabels number of labels of the zone's name, for the owner of the authority record
 * @param limit size limit in octets; an answer that does not fit is sent truncated (RFC 2181 §9)
 */
export function writeAnswer(query: Query, answer: Answer, zoneLabels: number, limit: number): Buffer {
  const opt = query.edns ? [writeOpt(query.edns, answer.code)] : []
  const answers = (answer.answers ?? []).map(record => writeRecord(HEADER_OCTETS, record))
  const top = HEADER_OCTETS + apexOffset(query.labels, zoneLabels)
  const authorities = answer.authority ? [writeRecord(top, answer.authority)] : []
  const flags =
    RESPONSE | query.echoedFlags | (answer.isAuthoritative ? AUTHORITATIVE : 0) | (answer.code & 0xf)
  const whole = Buffer.concat([
    header(query.id, flags, 1, answers.length, authorities.length, opt.length),
    query.question,
    ...answers,
    ...authorities,
    ...opt,
  ])
  return whole.length <= limit ? whole : writeTruncated(query, flags, opt)
}

/** The client retries over TCP. */
function writeTruncated({ id, question }: Query, flags: number, opt: readonly Buffer[]): Buffer {
  return Buffer.concat([header(id, flags | TRUNCATED, 1, 0, 0, opt.length), question, ...opt])
}

/** An empty, truncated answer. */
export function writeSlipAnswer(query: Query): Buffer {
  const opt = query.edns ? [writeOpt(query.edns, 0)] : []
  return writeTruncated(query, RESPONSE | query.echoedFlags, opt)
}

export function writeError({ id, echoedFlags, code }: Extract<Unreadable, { kind: 'fault' }>): Buffer {
  return header(id, RESPONSE | echoedFlags | code, 0, 0, 0, 0)
}

/** Strings of up to 255 octets, which clients concatenate (RFC 6376 §3.6.2.2). */
export function txtOctets(value: string): Buffer {
  const octets = Buffer.from(value)
  const strings: Buffer[] = []
  for (let at = 0; at === 0 || at < octets.length; at += MAX_STRING) {
    const string = octets.subarray(at, at + MAX_STRING)
    strings.push(Buffer.from([string.length]), string)
  }
  return Buffer.concat(strings)
}

/** @param name without the trailing dot */
export function nameOctets(name: string): Buffer {
  const labels = name.split('.').map(label => Buffer.from(label, 'latin1'))
  return Buffer.concat([...labels.flatMap(label => [Buffer.from([label.length]), label]), Buffer.from([0])])
}

function header(id: number, flags: number, ...counts: readonly number[]): Buffer {
  const octets = Buffer.alloc(HEADER_OCTETS)
  ;[id, flags, ...counts].forEach((value, index) => octets.writeUInt16BE(value & 0xffff, index * 2))
  return octets
}

function writeRecord(ownerAt: number, { type, ttl, octets }: ResourceRecord): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc000 | ownerAt, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(CLASS_INTERNET, 4)
  head.writeUInt32BE(ttl, 6)
  head.writeUInt16BE(octets.length, 10)
  return Buffer.concat([head, octets])
}

function writeOpt({ isDnssecOk }: Edns, code: number): Buffer {
  const octets = Buffer.alloc(11)
  octets.writeUInt16BE(TYPE.opt, 1)
  octets.writeUInt16BE(UDP_PAYLOAD, 3)
  octets.writeUInt8(code >> 4, 5)
  octets.writeUInt16BE(isDnssecOk ? 0x8000 : 0, 7)
  return octets
}

/** Offset of the zone's name within a name that ends in it. */
function apexOffset(labels: readonly string[], zoneLabels: number): number {
  return labels
    .slice(0, Math.max(0, labels.length - zoneLabels))
    .reduce((octets, label) => octets + 1 + label.length, 0)
}
