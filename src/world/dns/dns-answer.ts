/**
 * Interprets a DNS response: its records along CNAME chains, or a negative answer, and how long it may be cached. Pure.
 *
 * Standards: RFC 1034 §3.6.2 (aliases), RFC 2308 (negative answers), RFC 6604 (the response code applies to the end of the chain).
 * Never throws; an unusable response reads as `useless`.
 */
import type { Answer, DecodedPacket } from 'dns-packet'
import { responseCode, type Question, type RecordKind } from './dns-wire.js'

/** Longest chain followed; a longer one is a loop or an attack. */
export const MAX_ALIASES = 16

/**
 * - `records`: found, possibly at the end of a CNAME chain.
 * - `missing`: the zone says the name or record type does not exist.
 * - `alias`: the chain is incomplete; query `target` next, with `aliases` already followed.
 * - `useless`: the server could not or would not answer; try another one.
 */
export type Reading =
  | { readonly kind: 'records'; readonly records: readonly Answer[]; readonly ttlSeconds: number }
  | { readonly kind: 'missing'; readonly why: 'nxdomain' | 'nodata'; readonly ttlSeconds: number }
  | {
      readonly kind: 'alias'
      readonly target: string
      readonly aliases: number
      readonly ttlSeconds: number
    }
  | { readonly kind: 'useless'; readonly reason: string }

/** @param question name in lower case, without trailing dot */
export function readDnsAnswer(packet: DecodedPacket, question: Question): Reading {
  const code = responseCode(packet)
  if (code !== 'NOERROR' && code !== 'NXDOMAIN') return { kind: 'useless', reason: `server answered ${code}` }
  const answers = (packet.answers ?? []).filter(isInternet)
  const chain = followAliases(answers, question)
  if (chain.aliases > MAX_ALIASES) return { kind: 'useless', reason: 'too many aliases' }
  const records = answers.filter(record => record.type === question.type && nameOf(record) === chain.name)
  if (records.length > 0)
    return { kind: 'records', records, ttlSeconds: Math.min(chain.ttlSeconds, ...records.map(ttlOf)) }

  const authorities = (packet.authorities ?? []).filter(isInternet)
  const negativeTtl = Math.min(chain.ttlSeconds, negativeTtlOf(authorities))
  if (code === 'NXDOMAIN') return { kind: 'missing', why: 'nxdomain', ttlSeconds: negativeTtl }
  const hasSoa = authorities.some(record => record.type === 'SOA')
  if (chain.aliases > 0 && !hasSoa)
    return {
      kind: 'alias',
      target: chain.name,
      aliases: chain.aliases,
      ttlSeconds: chain.ttlSeconds,
    }
  // RFC 2308 §2.2: NS records without an SOA are a referral, not a denial, unless the answer is authoritative.
  if (!hasSoa && !packet.flag_aa && authorities.some(record => record.type === 'NS'))
    return { kind: 'useless', reason: 'server answered with a referral' }
  return { kind: 'missing', why: 'nodata', ttlSeconds: negativeTtl }
}

interface Chain {
  readonly name: string
  readonly aliases: number
  readonly ttlSeconds: number
}

function followAliases(answers: readonly Answer[], question: Question): Chain {
  const chain = { name: question.name, aliases: 0, ttlSeconds: Infinity }
  if (question.type === 'CNAME') return chain
  while (chain.aliases <= MAX_ALIASES) {
    const alias = answers.find(record => record.type === 'CNAME' && nameOf(record) === chain.name)
    if (alias?.type !== 'CNAME') break
    chain.name = normalName(alias.data)
    chain.ttlSeconds = Math.min(chain.ttlSeconds, ttlOf(alias))
    chain.aliases += 1
  }
  return chain
}

/** Lower case, without trailing dot; the root is the empty string. */
export function normalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

function nameOf(record: Answer): string {
  return normalName(record.name)
}

function isInternet(record: Answer): boolean {
  return 'class' in record && (record.class ?? 'IN') === 'IN'
}

/** RFC 2181 §8: a TTL with its highest bit set counts as zero. */
function ttlOf(record: Answer): number {
  const ttl = 'ttl' in record ? (record.ttl ?? 0) : 0
  return ttl > 0x7fffffff ? 0 : ttl
}

/** RFC 2308 §5: the smaller of the SOA's TTL and its MINIMUM field; without an SOA, a negative answer is not cached. */
function negativeTtlOf(authorities: readonly Answer[]): number {
  for (const record of authorities)
    if (record.type === 'SOA') return Math.min(ttlOf(record), record.data.minimum ?? 0)
  return 0
}

export const RECORD_VALUES = {
  A: texts,
  AAAA: texts,
  CNAME: records => texts(records).map(normalName),
  NS: records => texts(records).map(normalName),
  PTR: records => texts(records).map(normalName),
  MX: records =>
    records.flatMap(record =>
      record.type === 'MX'
        ? [{ exchange: normalName(record.data.exchange), preference: record.data.preference ?? 0 }]
        : [],
    ),
  TXT: records => records.flatMap(record => (record.type === 'TXT' ? [joinStrings(record.data)] : [])),
} as const satisfies Record<RecordKind, (records: readonly Answer[]) => readonly unknown[]>

function texts(records: readonly Answer[]): string[] {
  return records.flatMap(record => ('data' in record && typeof record.data === 'string' ? [record.data] : []))
}

/** RFC 7208 §3.3: the strings of a record are concatenated without spaces. */
function joinStrings(strings: string | Buffer | readonly (string | Buffer)[]): string {
  const parts = Array.isArray(strings)
    ? (strings as readonly (string | Buffer)[])
    : [strings as string | Buffer]
  return Buffer.concat(parts.map(part => Buffer.from(part as Buffer))).toString('utf8')
}
