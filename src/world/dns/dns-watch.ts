/**
 * Detects that the name servers do not answer at all, from regular lookups.
 *
 * While it reports trouble, one of the failed lookups is repeated when somebody asks, so that health recovers without traffic: mail that
 * waited is routed in the delivery threads, whose answers are not seen here.
 * Wraps all resolvers of the main thread; `/health` reads it. NXDOMAIN counts as an answer. One failing name may be its own servers'
 * fault; several different names in a row are ours.
 */
import type { Clock } from '../time/clock.js'
import type { DnsAnswer, Resolver } from './dns.js'

/** Consecutive failures of different names. */
const MIN_FAILED_NAMES = 3
/** Older failures are ignored. */
const MAX_AGE_MS = 15 * 60_000
/** Between two repetitions of a failed lookup. */
const REPEAT_MS = 10_000

interface FailedLookup {
  /** Monotonic ms. */
  readonly at: number
  readonly repeat: () => Promise<unknown>
}

export class DnsWatch {
  private readonly clock: Clock
  /** By name, those since the last answer. */
  private readonly failed = new Map<string, FailedLookup>()
  private lastReason = ''
  private repeatedAt = -Infinity

  constructor(clock: Clock) {
    this.clock = clock
  }

  watched(resolver: Resolver): Resolver {
    const seen = <T>(ask: (name: string) => Promise<DnsAnswer<T>>) => {
      const askAndRecord = async (name: string): Promise<DnsAnswer<T>> => {
        const answer = await ask(name)
        this.record(name, answer, () => askAndRecord(name))
        return answer
      }
      return askAndRecord
    }
    return {
      mx: seen(name => resolver.mx(name)),
      ipv4: seen(name => resolver.ipv4(name)),
      ipv6: seen(name => resolver.ipv6(name)),
      txt: seen(name => resolver.txt(name)),
      cname: seen(name => resolver.cname(name)),
      ptr: seen(name => resolver.ptr(name)),
      ns: seen(name => resolver.ns(name)),
    }
  }

  /** The last error if the name servers do not answer, otherwise undefined. */
  get trouble(): string | undefined {
    const since = this.clock.monotonic() - MAX_AGE_MS
    for (const [name, { at }] of this.failed) if (at < since) this.failed.delete(name)
    if (this.failed.size < MIN_FAILED_NAMES) return undefined
    this.repeatOne()
    return this.lastReason
  }

  private repeatOne(): void {
    const now = this.clock.monotonic()
    const [lookup] = this.failed.values()
    if (lookup === undefined || now - this.repeatedAt < REPEAT_MS) return
    this.repeatedAt = now
    // A closed resolver may reject; then nobody needs the answer.
    lookup.repeat().catch(() => undefined)
  }

  private record(name: string, answer: DnsAnswer<unknown>, repeat: () => Promise<unknown>): void {
    if (answer.kind !== 'unavailable') {
      this.failed.clear()
      return
    }
    this.lastReason = answer.reason
    if (this.failed.size >= MIN_FAILED_NAMES && !this.failed.has(name)) this.forgetOldest()
    this.failed.set(name, { at: this.clock.monotonic(), repeat })
  }

  private forgetOldest(): void {
    const [oldest] = this.failed.keys()
    if (oldest !== undefined) this.failed.delete(oldest)
  }
}
