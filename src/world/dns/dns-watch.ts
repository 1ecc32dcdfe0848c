/**
 * Detects that the name servers do not answer at all, from regular lookups; it sends no extra queries.
 *
 * Wraps all resolvers of the main thread; `/health` reads it. NXDOMAIN counts as an answer. One failing name may be its own servers'
 * fault; several different names in a row are ours.
 */
import type { Clock } from '../time/clock.js'
import type { DnsAnswer, Resolver } from './dns.js'

/** Consecutive failures of different names. */
const MIN_FAILED_NAMES = 3
/** Older failures are ignored. */
const MAX_AGE_MS = 15 * 60_000

export class DnsWatch {
  private readonly clock: Clock
  /** Names that failed since the last answer, with the time (monotonic ms). */
  private readonly failed = new Map<string, number>()
  private lastReason = ''

  constructor(clock: Clock) {
    this.clock = clock
  }

  watched(resolver: Resolver): Resolver {
    const seen =
      <T>(ask: (name: string) => Promise<DnsAnswer<T>>) =>
      async (name: string) => {
        const answer = await ask(name)
        this.record(name, answer)
        return answer
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
    for (const [name, at] of this.failed) if (at < since) this.failed.delete(name)
    return this.failed.size >= MIN_FAILED_NAMES ? this.lastReason : undefined
  }

  private record(name: string, answer: DnsAnswer<unknown>): void {
    if (answer.kind !== 'unavailable') {
      this.failed.clear()
      return
    }
    this.lastReason = answer.reason
    if (this.failed.size < MIN_FAILED_NAMES || this.failed.has(name))
      this.failed.set(name, this.clock.monotonic())
    else this.forgetOldestFor(name)
  }

  private forgetOldestFor(name: string): void {
    const [oldest] = this.failed.keys()
    if (oldest !== undefined) this.failed.delete(oldest)
    this.failed.set(name, this.clock.monotonic())
  }
}
