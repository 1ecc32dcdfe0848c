/**
 * Answers of an authoritative server, onto the wire.
 *
 * Called by `name-server.ts`. Owner names are pointers into the question, which is repeated as it came, so that letters have the case
 * they were asked in. Standards: RFC 1035 §4.1 (format), §3.3.14 (strings of 255 octets), RFC 6891 §6.1.2 (OPT), RFC 8482 §4.2 (ANY).
 * Pure. Fails: never.
 */
import { CLASS_INTERNET, TYPE, type Edns, type Query, type Unreadable } from './read-query.js'

export interface ResourceRecord {
  readonly type: number
  /** Seconds. */
  readonly ttl: number
  readonly octets: Buffer
}

export interface Answer {
  /** Of twelve bits: what passes 15 needs EDNS (RFC 6891 §6.1.3). */
  readonly code: number
  readonly isAuthoritative: boolean
  /** At the name that was asked for. */
  readonly answers?: readonly ResourceRecord[]
  /** At the top of the zone. */
  readonly authority?: ResourceRecord
}

const HEADER_OCTETS = 12
const RESPONSE = 0x8000
const AUTHORITATIVE = 0x0400
const TRUNCATED = 0x0200
/** Passes everywhere unfragmented: the DNS flag day 2020 value. */
export const UDP_PAYLOAD = 1_232
const LONGEST_STRING = 255

/**
 * @param zoneLabels how many labels of the question's name the zone's own name has, for the authority's owner
 * @param limit octets that may be sent; what does not fit goes without records, and says so (RFC 2181 §9)
 */
export function writeAnswer(query: Query, answer: Answer, zoneLabels: number, limit: number): Buffer {
  const opt = query.edns ? [writeOpt(query.edns, answer.code)] : []
  const answers = (answer.answers ?? []).map(record => writeRecord(HEADER_OCTETS, record))
  const top = HEADER_OCTETS + offsetOfTop(query.labels, zoneLabels)
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

/** Without records: whoever wants them asks again over TCP. */
function writeTruncated({ id, question }: Query, flags: number, opt: readonly Buffer[]): Buffer {
  return Buffer.concat([header(id, flags | TRUNCATED, 1, 0, 0, opt.length), question, ...opt])
}

/** Says nothing but that TCP is to be used. */
export function writeSlip(query: Query): Buffer {
  const opt = query.edns ? [writeOpt(query.edns, 0)] : []
  return writeTruncated(query, RESPONSE | query.echoedFlags, opt)
}

export function writeFault({ id, echoedFlags, code }: Extract<Unreadable, { kind: 'fault' }>): Buffer {
  return header(id, RESPONSE | echoedFlags | code, 0, 0, 0, 0)
}

/** Strings of 255 octets, which whoever reads them joins (RFC 6376 §3.6.2.2). */
export function txtOctets(value: string): Buffer {
  const octets = Buffer.from(value)
  const strings: Buffer[] = []
  for (let at = 0; at === 0 || at < octets.length; at += LONGEST_STRING) {
    const string = octets.subarray(at, at + LONGEST_STRING)
    strings.push(Buffer.from([string.length]), string)
  }
  return Buffer.concat(strings)
}

/** @param name without the dot at its end */
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

/** Where the zone's name begins within a name that ends with it. */
function offsetOfTop(labels: readonly string[], zoneLabels: number): number {
  return labels
    .slice(0, Math.max(0, labels.length - zoneLabels))
    .reduce((octets, label) => octets + 1 + label.length, 0)
}
