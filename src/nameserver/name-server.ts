/**
 * An authoritative name server for one small zone: its top and names right below it that have TXT records.
 *
 * Opened by the composition root for `dns.dkim_zone`; `world/dns/listen-dns.ts` brings it questions. Never recurses, transfers no zone,
 * gives nothing out about other names; answers stay short, so that they are no use for amplifying anything.
 * Standards: RFC 1035, RFC 2308 §2 (no such name, no such record), RFC 8020 (nothing below a name that is not there), RFC 6891 (EDNS),
 * RFC 8482 §4.2 (ANY), RFC 5936 §2.2.1 and RFC 8906 (what is not served is refused, and not left without an answer).
 * Fails: never; what cannot be looked up is SERVFAIL.
 */
import type { DnsHandler, DnsSender } from '../world/dns/listen-dns.js'
import type { Clock } from '../world/time/clock.js'
import { CLASS_INTERNET, CODE, readQuery, TYPE, type Query } from './read-query.js'
import { ResponseLimit } from './response-limit.js'
import {
  nameOctets,
  txtOctets,
  UDP_PAYLOAD,
  writeAnswer,
  writeFault,
  writeSlip,
  type Answer,
  type ResourceRecord,
} from './write-answer.js'

/** TXT records of one name; each value in one piece, however long. */
export interface TextRecords {
  readonly ttl: number
  /** None: the name is there, and has no such record. */
  readonly values: readonly string[]
}

export interface ZoneSource {
  /** @param label right below the zone, lower case @returns undefined where there is no such name */
  find(label: string): Promise<TextRecords | undefined>
}

export interface NameServerOptions {
  /** Lower case, without the dot at its end. */
  readonly zone: string
  /** The one name server: this machine, by a name outside of the zone. */
  readonly server: string
  readonly clock: Clock
  readonly source: ZoneSource
}

/** Seconds. Nobody transfers the zone, so the other figures are for show; the last is how long a "no" may be kept. */
const SOA = { refresh: 7_200, retry: 900, expire: 1_209_600, minimum: 60 } as const
const TOP_TTL = 3_600
/** BADVERS (RFC 6891 §9). */
const BAD_VERSION = 16

export function openNameServer(options: NameServerOptions): DnsHandler {
  const { zone, server, clock, source } = options
  const zoneLabels = zone.split('.')
  const limit = new ResponseLimit(clock)
  const top = topRecords(server, Math.floor(clock.now() / 1_000))
  const noRecords: Answer = { code: 0, isAuthoritative: true, authority: top.negative }

  async function answerOf(query: Query): Promise<Answer> {
    if ((query.edns?.version ?? 0) > 0) return { code: BAD_VERSION, isAuthoritative: false }
    const below = query.class === CLASS_INTERNET ? labelsBelow(query.labels, zoneLabels) : undefined
    // AXFR, IXFR and what else is no record (RFC 6895 §3.1), but for ANY.
    const isMeta = query.type > 127 && query.type < TYPE.any
    if (below === undefined || isMeta || query.type === TYPE.opt)
      return { code: CODE.refused, isAuthoritative: false }
    if (below.length === 0) return answerAtTop(query.type)
    const [label = ''] = below
    const found = below.length === 1 ? await source.find(label) : undefined
    if (!found) return { ...noRecords, code: CODE.noSuchName }
    return found.values.length > 0 || query.type === TYPE.any ? positive(query.type, found) : noRecords
  }

  function answerAtTop(type: number): Answer {
    if (type === TYPE.any) return { code: 0, isAuthoritative: true, answers: [MINIMAL_ANY] }
    const record = type === TYPE.soa ? top.soa : type === TYPE.ns ? top.ns : undefined
    return record ? { code: 0, isAuthoritative: true, answers: [record] } : noRecords
  }

  function positive(type: number, { ttl, values }: TextRecords): Answer {
    if (type === TYPE.any) return { code: 0, isAuthoritative: true, answers: [MINIMAL_ANY] }
    if (type !== TYPE.txt) return noRecords
    const answers = values.map(value => ({ type: TYPE.txt, ttl, octets: txtOctets(value) }))
    return { code: 0, isAuthoritative: true, answers }
  }

  return {
    async answer(message: Buffer, { address, transport }: DnsSender) {
      const query = readQuery(message)
      if (query.kind === 'nothing') return undefined
      const allowance = transport === 'udp' ? limit.take(address) : 'answer'
      if (allowance === 'silence') return undefined
      if (query.kind === 'fault') return writeFault(query)
      if (allowance === 'slip') return writeSlip(query)
      const most = transport === 'tcp' ? 0xffff : Math.min(query.edns?.payload ?? 512, UDP_PAYLOAD)
      try {
        return writeAnswer(query, await answerOf(query), zoneLabels.length, most)
      } catch {
        return writeAnswer(query, { code: CODE.serverFailure, isAuthoritative: false }, 0, most)
      }
    },
  }
}

/** RFC 8482 §4.2. */
const MINIMAL_ANY: ResourceRecord = {
  type: TYPE.hinfo,
  ttl: TOP_TTL,
  octets: Buffer.concat([txtOctets('RFC8482'), txtOctets('')]),
}

/** @param serial of the SOA: when this process began; nobody compares it */
function topRecords(server: string, serial: number) {
  const numbers = Buffer.alloc(20)
  const { refresh, retry, expire, minimum } = SOA
  ;[serial, refresh, retry, expire, minimum].forEach((value, index) =>
    numbers.writeUInt32BE(value >>> 0, index * 4),
  )
  const octets = Buffer.concat([nameOctets(server), nameOctets(`postmaster.${server}`), numbers])
  const soa = { type: TYPE.soa, ttl: TOP_TTL, octets }
  return {
    soa,
    /** As it stands beside a "no" (RFC 2308 §3). */
    negative: { ...soa, ttl: minimum },
    ns: { type: TYPE.ns, ttl: TOP_TTL, octets: nameOctets(server) },
  }
}

/** @returns the labels before the zone's name; undefined where the name is not in the zone */
function labelsBelow(labels: readonly string[], zone: readonly string[]): readonly string[] | undefined {
  const below = labels.length - zone.length
  if (below < 0 || zone.some((label, index) => labels[below + index] !== label)) return undefined
  return labels.slice(0, below)
}
