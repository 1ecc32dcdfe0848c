/**
 * Authoritative name server for one small zone: its apex, and names directly below it that have TXT records.
 *
 * Serves `dns.dkim_zone`; `world/dns/listen-dns.ts` delivers the queries. No recursion, no zone transfers. UDP
 * answers are small and rate-limited, so the server is useless for amplification attacks. Never rejects; a failed
 * lookup is SERVFAIL.
 * Standards: RFC 1035, RFC 2308 §2 (NXDOMAIN, NODATA), RFC 8020 (nothing exists below a nonexistent name), RFC 6891
 * (EDNS), RFC 8482 §4.2 (ANY), RFC 5936 §2.2.1 and RFC 8906 (unsupported queries are refused, not ignored).
 */
import type { DnsHandler, DnsSender } from '../world/dns/listen-dns.js'
import type { Clock } from '../world/time/clock.js'
import {
  type Answer,
  CLASS_INTERNET,
  nameOctets,
  parseQuery,
  type Query,
  RCODE,
  type ResourceRecord,
  txtOctets,
  TYPE,
  UDP_PAYLOAD,
  writeAnswer,
  writeError,
  writeSlipAnswer,
} from './dns-message.js'
import { addressKey } from '../world/net/ip-address.js'

/** TXT records of one name; each value as one string of any length. */
export interface TextRecords {
  readonly ttl: number
  /** Empty: the name exists but has no TXT record. */
  readonly values: readonly string[]
}

export interface ZoneSource {
  /** @param label directly below the zone, lower case @returns undefined if the name does not exist */
  find(label: string): Promise<TextRecords | undefined>
}

interface NameServerOptions {
  /** Lower case, without the trailing dot. */
  readonly zone: string
  /** The only name server: this machine, under a name outside the zone. */
  readonly server: string
  readonly clock: Clock
  readonly source: ZoneSource
}

/** Seconds. Without zone transfers only `minimum` matters: the TTL of negative answers. */
const SOA = { refresh: 7_200, retry: 900, expire: 1_209_600, minimum: 60 } as const
const APEX_TTL = 3_600
/** BADVERS (RFC 6891 §9). */
const BAD_VERSION = 16

export function openNameServer(options: NameServerOptions): DnsHandler {
  const { zone, server, clock, source } = options
  const zoneLabels = zone.split('.')
  const limit = new ResponseRateLimit(clock)
  const top = apexRecords(server, Math.floor(clock.now() / 1_000))
  const noRecords: Answer = { code: 0, isAuthoritative: true, authority: top.negative }

  async function resolve(query: Query): Promise<Answer> {
    if ((query.edns?.version ?? 0) > 0) return { code: BAD_VERSION, isAuthoritative: false }
    const below = query.class === CLASS_INTERNET ? labelsBelow(query.labels, zoneLabels) : undefined
    // Meta types such as AXFR and IXFR (RFC 6895 §3.1), except ANY.
    const isMeta = query.type > 127 && query.type < TYPE.any
    if (below === undefined || isMeta || query.type === TYPE.opt)
      return { code: RCODE.refused, isAuthoritative: false }
    if (below.length === 0) return answerAtApex(query.type)
    const [label = ''] = below
    const found = below.length === 1 ? await source.find(label) : undefined
    if (!found) return { ...noRecords, code: RCODE.nxDomain }
    return found.values.length > 0 || query.type === TYPE.any ? positive(query.type, found) : noRecords
  }

  function answerAtApex(type: number): Answer {
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
      const query = parseQuery(message)
      if (query.kind === 'nothing') return undefined
      const allowance = transport === 'udp' ? limit.take(address) : 'answer'
      if (allowance === 'silence') return undefined
      if (query.kind === 'fault') return writeError(query)
      if (allowance === 'slip') return writeSlipAnswer(query)
      const most = transport === 'tcp' ? 0xffff : Math.min(query.edns?.payload ?? 512, UDP_PAYLOAD)
      try {
        return writeAnswer(query, await resolve(query), zoneLabels.length, most)
      } catch {
        return writeAnswer(query, { code: RCODE.serverFailure, isAuthoritative: false }, 0, most)
      }
    },
  }
}

/** RFC 8482 §4.2. */
const MINIMAL_ANY: ResourceRecord = {
  type: TYPE.hinfo,
  ttl: APEX_TTL,
  octets: Buffer.concat([txtOctets('RFC8482'), txtOctets('')]),
}

/** @param serial of the SOA: the start time of this process; nobody compares it */
function apexRecords(server: string, serial: number) {
  const numbers = Buffer.alloc(20)
  const { refresh, retry, expire, minimum } = SOA
  ;[serial, refresh, retry, expire, minimum].forEach((value, index) =>
    numbers.writeUInt32BE(value >>> 0, index * 4),
  )
  const octets = Buffer.concat([nameOctets(server), nameOctets(`postmaster.${server}`), numbers])
  const soa = { type: TYPE.soa, ttl: APEX_TTL, octets }
  return {
    soa,
    /** For negative answers (RFC 2308 §3). */
    negative: { ...soa, ttl: minimum },
    ns: { type: TYPE.ns, ttl: APEX_TTL, octets: nameOctets(server) },
  }
}

/** @returns the labels in front of the zone's name; undefined if the name is not in the zone */
function labelsBelow(labels: readonly string[], zone: readonly string[]): readonly string[] | undefined {
  const below = labels.length - zone.length
  if (below < 0 || zone.some((label, index) => labels[below + index] !== label)) return undefined
  return labels.slice(0, below)
}

type Allowance = 'answer' | 'slip' | 'silence'

interface Bucket {
  /** Answers left at the time `at`. */
  left: number
  at: number
  over: number
}

/** Per second and network; a mail host verifying signatures queries each key about once an hour. */
const ANSWERS_PER_SECOND = 100
const BURST = 200
const MAX_NETWORKS = 10_000

/**
 * Limits UDP answers per network, since source addresses of UDP can be spoofed.
 *
 * Over the limit, every second query gets a truncated answer, which sends real clients to TCP; the others are dropped. The least
 * recently seen network is evicted.
 */
class ResponseRateLimit {
  private readonly buckets = new Map<string, Bucket>()
  private readonly clock: Pick<Clock, 'monotonic'>

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  take(address: string): Allowance {
    const bucket = this.bucketOf(networkOf(address))
    if (bucket.left >= 1) {
      bucket.left -= 1
      return 'answer'
    }
    bucket.over += 1
    return bucket.over % 2 === 0 ? 'slip' : 'silence'
  }

  private bucketOf(network: string): Bucket {
    const now = this.clock.monotonic()
    const bucket = this.buckets.get(network) ?? { left: BURST, at: now, over: 0 }
    bucket.left = Math.min(BURST, bucket.left + ((now - bucket.at) / 1_000) * ANSWERS_PER_SECOND)
    bucket.at = now
    this.buckets.delete(network)
    this.buckets.set(network, bucket)
    const eldest = this.buckets.size > MAX_NETWORKS ? this.buckets.keys().next().value : undefined
    if (eldest !== undefined) this.buckets.delete(eldest)
    return bucket
  }
}

/** /24 of IPv4, /48 of IPv6: the smallest network one party has, and can spoof. */
function networkOf(address: string): string {
  const key = addressKey(address)
  return key
    .split(key.includes(':') ? ':' : '.')
    .slice(0, 3)
    .join('.')
}
