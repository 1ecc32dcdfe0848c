/**
 * Sliding-window counters per name (an API key, a client address), over a minute by default.
 *
 * A window is divided into 60 buckets, so a counter takes 240 bytes whatever the limit and entries expire at most one bucket early.
 * Counters are kept in memory and reset by a restart. They use the monotonic clock, so that changing the system time neither resets
 * limits nor locks anybody out.
 */
import type { Clock } from '../world/time/clock.js'

const BUCKETS = 60
const MINUTE_MS = 60_000

/** Above this the least recently used name is dropped. */
const MAX_NAMES = 50_000

export interface WindowState {
  readonly isAllowed: boolean
  /** Per window; `UNLIMITED` if there is no limit. */
  readonly limit: number
  readonly remaining: number
  /** When the next counted entry expires, ms since epoch UTC. */
  readonly resetAt: number
  /** Wait until the same request would be allowed, ms; 0 if it is. */
  readonly retryAfterMs: number
}

/** Header value for a limit of 0 (none), because clients expect a number. */
export const UNLIMITED = 2_147_483_647

interface Counter {
  readonly buckets: Uint32Array
  total: number
  /** Index of the newest bucket counted, in buckets of the monotonic clock. */
  newest: number
}

/** Opens windows of a kind, e.g. of API keys. @param windowMs a minute by default */
export type OpenWindow = (kind: string, windowMs?: number) => SlidingWindow

export class SlidingWindow {
  protected readonly clock: Clock
  protected readonly windowMs: number
  private readonly bucketMs: number
  private readonly counters = new Map<string, Counter>()

  constructor(clock: Clock, windowMs = MINUTE_MS) {
    this.clock = clock
    this.windowMs = windowMs
    this.bucketMs = windowMs / BUCKETS
  }

  /**
   * Where several nodes share limits, call it before `take` and wait for what it returns, if anything: others may have to be asked how much
   * of the limit is left. Never rejects.
   */
  prepare(_name: string, _amount: number, _limit: number): Promise<void> | undefined {
    return undefined
  }

  /**
   * Counts `amount` against the name if it fits, otherwise counts nothing.
   *
   * @param limit per window; 0 = unlimited
   */
  take(name: string, amount: number, limit: number): WindowState {
    return this.takeUpTo(name, amount, limit, limit)
  }

  /** @param most how much may be counted here; the limit, or this node's part of it */
  protected takeUpTo(name: string, amount: number, limit: number, most: number): WindowState {
    const now = this.clock.monotonic()
    // Headers show wall-clock time.
    const offset = this.clock.now() - now
    if (limit === 0)
      return {
        isAllowed: true,
        limit: UNLIMITED,
        remaining: UNLIMITED,
        resetAt: offset + now + this.windowMs,
        retryAfterMs: 0,
      }
    const counter = this.counterOf(name)
    const second = Math.floor(now / this.bucketMs)
    slide(counter, second)
    const isAllowed = counter.total + amount <= most
    if (isAllowed) {
      const index = second % BUCKETS
      counter.buckets[index] = (counter.buckets[index] ?? 0) + amount
      counter.total += amount
    }
    return {
      isAllowed,
      limit,
      remaining: Math.max(0, most - counter.total),
      resetAt: offset + freeAt(counter, second, 1) * this.bucketMs,
      retryAfterMs: isAllowed
        ? 0
        : freeAt(counter, second, counter.total + amount - most) * this.bucketMs - now,
    }
  }

  /** Amount counted for the name; counts nothing itself. */
  used(name: string): number {
    const counter = this.counters.get(name)
    if (!counter) return 0
    slide(counter, Math.floor(this.clock.monotonic() / this.bucketMs))
    return counter.total
  }

  /** Names with a counter, most recently used last. */
  protected names(): IterableIterator<string> {
    return this.counters.keys()
  }

  /** Uncounts what did not happen after all, newest first. */
  giveBack(name: string, amount: number): void {
    const counter = this.counters.get(name)
    if (!counter) return
    slide(counter, Math.floor(this.clock.monotonic() / this.bucketMs))
    for (let age = 0, left = amount; age < BUCKETS && left > 0; age += 1) {
      const index = (((counter.newest - age) % BUCKETS) + BUCKETS) % BUCKETS
      const taken = Math.min(left, counter.buckets[index] ?? 0)
      counter.buckets[index] = (counter.buckets[index] ?? 0) - taken
      counter.total -= taken
      left -= taken
    }
  }

  private counterOf(name: string): Counter {
    const known = this.counters.get(name)
    if (known) {
      this.counters.delete(name)
      this.counters.set(name, known)
      return known
    }
    const counter: Counter = { buckets: new Uint32Array(BUCKETS), total: 0, newest: 0 }
    this.counters.set(name, counter)
    if (this.counters.size > MAX_NAMES) {
      const [oldest] = this.counters.keys()
      if (oldest !== undefined) this.counters.delete(oldest)
    }
    return counter
  }
}

/** Empties the buckets that have left the window. */
function slide(counter: Counter, second: number): void {
  const passed = Math.min(second - counter.newest, BUCKETS)
  for (let step = 1; step <= passed; step += 1) {
    const index = (counter.newest + step) % BUCKETS
    counter.total -= counter.buckets[index] ?? 0
    counter.buckets[index] = 0
  }
  if (passed === BUCKETS) {
    counter.buckets.fill(0)
    counter.total = 0
  }
  counter.newest = second
}

/** The bucket in which at least `amount` of what is counted has left the window. */
function freeAt(counter: Counter, second: number, amount: number): number {
  let freed = 0
  for (let age = BUCKETS - 1; age >= 0; age -= 1) {
    freed += counter.buckets[(((second - age) % BUCKETS) + BUCKETS) % BUCKETS] ?? 0
    if (freed >= amount) return second - age + BUCKETS
  }
  return second + BUCKETS
}
