/**
 * Attempts of the last minute by destination, for the live view of the queue.
 *
 * Memory is bounded: beyond `MAX_DESTINATIONS`, attempts to further ones are not counted until others have had none for a minute.
 */
import type { Clock } from '../world/time/clock.js'

export interface Rates {
  readonly delivered: number
  readonly deferred: number
  /** Rejected permanently, or impossible to send. */
  readonly bounced: number
}

export const NO_RATES: Rates = { delivered: 0, deferred: 0, bounced: 0 }

type Counts = { -readonly [Kind in keyof Rates]: Rates[Kind] }

const MAX_DESTINATIONS = 10_000
const SECONDS = 60

export class DestinationRates {
  private readonly clock: Pick<Clock, 'monotonic'>
  /** By second, oldest first; at most the last minute. */
  private readonly seconds = new Map<number, Map<string, Counts>>()
  private readonly sums = new Map<string, Counts>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  count(destination: string, kind: keyof Rates): void {
    const second = this.forgetOld()
    if (!this.sums.has(destination) && this.sums.size >= MAX_DESTINATIONS) return
    const counts = this.seconds.get(second) ?? new Map<string, Counts>()
    this.seconds.set(second, counts)
    for (const map of [counts, this.sums]) {
      const known = map.get(destination)
      if (known) known[kind] += 1
      else map.set(destination, { ...NO_RATES, [kind]: 1 })
    }
  }

  /** Of the last minute, this second included. */
  get byDestination(): ReadonlyMap<string, Rates> {
    this.forgetOld()
    return this.sums
  }

  /** @returns the current second */
  private forgetOld(): number {
    const now = Math.floor(this.clock.monotonic() / 1_000)
    for (const [second, counts] of this.seconds) {
      if (second > now - SECONDS) break
      this.seconds.delete(second)
      for (const [destination, gone] of counts) this.subtract(destination, gone)
    }
    return now
  }

  private subtract(destination: string, gone: Rates): void {
    const sum = this.sums.get(destination)
    if (!sum) return
    sum.delivered -= gone.delivered
    sum.deferred -= gone.deferred
    sum.bounced -= gone.bounced
    if (attemptsOf(sum) === 0) this.sums.delete(destination)
  }
}

export function attemptsOf({ delivered, deferred, bounced }: Rates): number {
  return delivered + deferred + bounced
}

export function addRates(one: Rates, other: Rates): Rates {
  return {
    delivered: one.delivered + other.delivered,
    deferred: one.deferred + other.deferred,
    bounced: one.bounced + other.bounced,
  }
}
