/**
 * The stub resolver: queries recursive name servers, from the system or the configuration.
 *
 * Caches answers for their TTL in bounded memory, and shares one query among identical concurrent questions. Does not recurse or
 * validate DNSSEC. Standards: RFC 1035, RFC 2308 (negative caching), RFC 5452 (forgery). Never rejects; if no server answers, the
 * result is `unavailable`, which senders treat as temporary (RFC 5321 §5.1).
 */
import { getServers } from 'node:dns'
import { setMaxListeners } from 'node:events'
import { FairGate } from '../../core/fair-shares.js'
import { currentHolder } from '../../core/holder.js'
import type { Clock } from '../time/clock.js'
import { MAX_ALIASES, readDnsAnswer, RECORD_VALUES, type Reading } from './dns-answer.js'
import { askServer, GIVEN_UP, type NameServer, type RecordKind } from './dns-wire.js'
import type { DnsAnswer, MxRecord, Resolver } from './dns.js'
import { parseAddressAndPort } from '../net/ip-address.js'
import type { Random } from '../random.js'

export interface ResolverOptions {
  /** `ip`, `ip:port` or `[v6]:port`; empty for the system's (/etc/resolv.conf). Invalid entries are ignored. */
  readonly servers: readonly string[]
  /** Per server and attempt. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly random: Random
  /** After it aborts, current and later lookups are `unavailable`. */
  readonly signal?: AbortSignal | undefined
}

const DNS_PORT = 53
/** Cached answers, evicted least recently used; a few megabytes. */
const MAX_CACHED = 20_000
const MAX_TTL_SECONDS = 3_600
const MAX_NEGATIVE_TTL_SECONDS = 300
/** Failures are cached briefly, so a queue full of one broken domain queries once but recovery is noticed. */
const UNAVAILABLE_SECONDS = 5

/** Concurrent queries, each with its own socket; one workspace alone has half of them. Others queue. */
const MAX_CONCURRENT = 512

interface Cached {
  readonly answer: DnsAnswer<unknown>
  /** On the monotonic clock, ms. */
  readonly expiresAt: number
}

export function openResolver(options: ResolverOptions): Resolver {
  const { clock, signal } = options
  // Every lookup in progress adds a listener.
  if (signal) setMaxListeners(0, signal)
  const servers = nameServers(options.servers)
  const cache = new Map<string, Cached>()
  const underWay = new Map<string, Promise<DnsAnswer<unknown>>>()
  const turns = new FairGate(MAX_CONCURRENT)
  /** Queried first: the last server that answered, so a dead one costs one timeout. */
  let preferred = 0

  async function lookUp(type: RecordKind, name: string): Promise<DnsAnswer<unknown>> {
    const asked = name.toLowerCase().replace(/\.$/, '')
    // Not encodable: on the wire it would become another name.
    if (!isAskable(asked)) return { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }
    const key = `${type} ${asked}`
    const cached = fromCache(key)
    if (cached !== undefined) return cached
    const shared = underWay.get(key)
    if (shared !== undefined) return shared
    const query = turns
      .run(currentHolder(), () => resolve(type, asked))
      .then(answer => keep(key, answer))
      .finally(() => underWay.delete(key))
    underWay.set(key, query)
    return query
  }

  function fromCache(key: string): DnsAnswer<unknown> | undefined {
    const cached = cache.get(key)
    if (cached === undefined) return undefined
    cache.delete(key)
    const leftMs = cached.expiresAt - clock.monotonic()
    if (leftMs <= 0) return undefined
    cache.set(key, cached) // back in as the youngest
    const { answer } = cached
    return answer.kind === 'unavailable' ? answer : { ...answer, ttlSeconds: Math.ceil(leftMs / 1000) }
  }

  function keep(key: string, answer: DnsAnswer<unknown>): DnsAnswer<unknown> {
    const ttlSeconds = answer.kind === 'unavailable' ? UNAVAILABLE_SECONDS : answer.ttlSeconds
    if (ttlSeconds > 0) cache.set(key, { answer, expiresAt: clock.monotonic() + ttlSeconds * 1000 })
    const eldest = cache.size > MAX_CACHED ? cache.keys().next().value : undefined
    if (eldest !== undefined) cache.delete(eldest)
    return answer
  }

  /** Queries, and follows CNAME chains that the answer leaves incomplete. */
  async function resolve(type: RecordKind, name: string): Promise<DnsAnswer<unknown>> {
    let asked = name
    let aliases = 0
    let ttlSeconds = MAX_TTL_SECONDS
    for (;;) {
      const reading = await askServers(type, asked)
      if (reading.kind === 'useless')
        return { kind: 'unavailable', reason: `${name} ${type}: ${reading.reason}` }
      ttlSeconds = Math.min(ttlSeconds, reading.ttlSeconds)
      if (reading.kind === 'records')
        return { kind: 'found', records: RECORD_VALUES[type](reading.records), ttlSeconds }
      if (reading.kind === 'missing')
        return {
          kind: 'missing',
          why: reading.why,
          ttlSeconds: Math.min(ttlSeconds, MAX_NEGATIVE_TTL_SECONDS),
        }
      asked = reading.target
      aliases += reading.aliases
      if (aliases > MAX_ALIASES) return { kind: 'unavailable', reason: `${name} ${type}: too many aliases` }
      if (!isAskable(asked)) return { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }
    }
  }

  /** Tries every server, then retries those that timed out, since UDP packets get lost. */
  async function askServers(type: RecordKind, name: string): Promise<Reading> {
    let problem = 'no name server is configured'
    let round = servers.map((_, index) => (preferred + index) % servers.length)
    for (let rounds = 0; rounds < 2 && round.length > 0; rounds++) {
      const silent: number[] = []
      for (const index of round) {
        const server = servers[index]
        if (server === undefined) continue
        if (signal?.aborted) return { kind: 'useless', reason: GIVEN_UP }
        try {
          const reading = readDnsAnswer(await askServer(options, server, { type, name }), { type, name })
          if (reading.kind !== 'useless') {
            preferred = index
            return reading
          }
          problem = reading.reason
        } catch (error) {
          problem = error instanceof Error ? error.message : String(error)
          silent.push(index)
        }
      }
      round = silent
    }
    return { kind: 'useless', reason: problem }
  }

  // The cache key includes the type, so the value has the requested type.
  return {
    mx: name => lookUp('MX', name) as Promise<DnsAnswer<MxRecord>>,
    ipv4: name => lookUp('A', name) as Promise<DnsAnswer<string>>,
    ipv6: name => lookUp('AAAA', name) as Promise<DnsAnswer<string>>,
    txt: name => lookUp('TXT', name) as Promise<DnsAnswer<string>>,
    cname: name => lookUp('CNAME', name) as Promise<DnsAnswer<string>>,
    ns: name => lookUp('NS', name) as Promise<DnsAnswer<string>>,
    ptr: name => lookUp('PTR', name) as Promise<DnsAnswer<string>>,
  }
}

function nameServers(configured: readonly string[]): NameServer[] {
  const texts = configured.length > 0 ? configured : getServers()
  return texts.flatMap(text => parseAddressAndPort(text, DNS_PORT) ?? [])
}

/** RFC 1035 §2.3.4: labels of 1 to 63 octets, 253 in all as text. */
function isAskable(name: string): boolean {
  return name.length <= 253 && name.split('.').every(label => /^[\x21-\x2d\x2f-\x7e]{1,63}$/.test(label))
}
