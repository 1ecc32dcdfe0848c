/**
 * Whether the name servers answer at all, as those see it who ask for their own ends: nobody is asked for this alone.
 *
 * The composition root wraps every resolver of the main thread in one watch; `/health` asks it. That a name does not exist is an
 * answer. One name that fails says something of its own servers, several different ones in a row say something of ours. Memory: a few
 * names. Fails: never.
 */
import type { Clock } from '../time/clock.js'
import type { DnsAnswer, Resolver } from './dns.js'

/** Different names without an answer, and none with one between them. */
const NAMES = 3
/** What was learnt longer ago says nothing of now. */
const FORGOTTEN_MS = 15 * 60_000

export class DnsWatch {
  private readonly clock: Clock
  /** Without an answer since the last answer, with the moment (monotonic). */
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
        this.note(name, answer)
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

  /** Why nothing is answered; undefined where that is not known. */
  get trouble(): string | undefined {
    const since = this.clock.monotonic() - FORGOTTEN_MS
    for (const [name, at] of this.failed) if (at < since) this.failed.delete(name)
    return this.failed.size >= NAMES ? this.lastReason : undefined
  }

  private note(name: string, answer: DnsAnswer<unknown>): void {
    if (answer.kind !== 'unavailable') {
      this.failed.clear()
      return
    }
    this.lastReason = answer.reason
    if (this.failed.size < NAMES || this.failed.has(name)) this.failed.set(name, this.clock.monotonic())
    else this.forgetOldestFor(name)
  }

  private forgetOldestFor(name: string): void {
    const [oldest] = this.failed.keys()
    if (oldest !== undefined) this.failed.delete(oldest)
    this.failed.set(name, this.clock.monotonic())
  }
}
