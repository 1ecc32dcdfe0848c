/**
 * The resolver that asks real name servers: recursive ones, those of the system or those of the configuration.
 *
 * Opened once by the composition root and once per delivery thread. Answers are kept as long as they say, in bounded
 * memory; identical questions asked at the same time share one query. Never recurses itself, never validates DNSSEC.
 * Standards: RFC 1035, RFC 2308 (keeping "no"), RFC 5452 (forgery). Fails: never rejects; what no server would answer is
 * `unavailable`, which a sender takes as "later" (RFC 5321 §5.1).
 */
import { getServers } from 'node:dns'
import { setMaxListeners } from 'node:events'
import type { Clock } from '../time/clock.js'
import { MAX_ALIASES, readDnsAnswer, RECORD_VALUES, type Reading } from './dns-answer.js'
import { askServer, GIVEN_UP, type NameServer, type RecordKind } from './dns-wire.js'
import type { DnsAnswer, MxRecord, Resolver } from './dns.js'
import { parseAddressAndPort } from '../net/ip-address.js'
import type { Random } from '../random.js'

export interface ResolverOptions {
  /** `ip`, `ip:port` or `[v6]:port`; empty means those of the system (/etc/resolv.conf). Text that is neither is left out. */
  readonly servers: readonly string[]
  /** How long one server has for one answer, ms. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly random: Random
  /** Once it aborts, questions under way and all later ones are `unavailable`. */
  readonly signal?: AbortSignal | undefined
}

const DNS_PORT = 53
/** Cached answers; the one used longest ago gives way. At some 200 octets each this is a few megabytes. */
const MAX_CACHED = 20_000
const LONGEST_TTL_SECONDS = 3_600
const LONGEST_NEGATIVE_TTL_SECONDS = 300
/** Long enough that a queue full of one broken domain asks once, short enough to see the mend. */
const UNAVAILABLE_SECONDS = 5

/** Queries under way at once, each with a socket of its own; more wait their turn. */
const MAX_UNDER_WAY = 256

interface Cached {
  readonly answer: DnsAnswer<unknown>
  /** On the monotonic clock, ms. */
  readonly expiresAt: number
}

export function openResolver(options: ResolverOptions): Resolver {
  const { clock, signal } = options
  // Each question under way listens for it.
  if (signal) setMaxListeners(0, signal)
  const servers = nameServers(options.servers)
  const cache = new Map<string, Cached>()
  const underWay = new Map<string, Promise<DnsAnswer<unknown>>>()
  const turns = new Turns(MAX_UNDER_WAY)
  /** The server that answered last is asked first, so that a dead one costs its timeout once. */
  let preferred = 0

  async function lookUp(type: RecordKind, name: string): Promise<DnsAnswer<unknown>> {
    const asked = name.toLowerCase().replace(/\.$/, '')
    // No zone can hold such a name, and on the wire it would turn into another one.
    if (!isAskable(asked)) return { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }
    const key = `${type} ${asked}`
    const cached = fromCache(key)
    if (cached !== undefined) return cached
    const shared = underWay.get(key)
    if (shared !== undefined) return shared
    const query = turns
      .take(() => resolve(type, asked))
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

  /** Asks, and asks again for the target where the answer ends in the middle of aliases. */
  async function resolve(type: RecordKind, name: string): Promise<DnsAnswer<unknown>> {
    let asked = name
    let aliases = 0
    let ttlSeconds = LONGEST_TTL_SECONDS
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
          ttlSeconds: Math.min(ttlSeconds, LONGEST_NEGATIVE_TTL_SECONDS),
        }
      asked = reading.target
      aliases += reading.aliases
      if (aliases > MAX_ALIASES) return { kind: 'unavailable', reason: `${name} ${type}: too many aliases` }
      if (!isAskable(asked)) return { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }
    }
  }

  /** Every server once, then those that stayed silent once more: a UDP packet may just have been lost. */
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

  // The key of the cache holds the type, so that what comes out has the type that went in.
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

/** Lets a bounded number of tasks run at once. */
class Turns {
  private free: number
  private readonly waiting: (() => void)[] = []

  constructor(most: number) {
    this.free = most
  }

  async take<T>(task: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1
    else await new Promise<void>(resolve => this.waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.free += 1
      else next()
    }
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
