/** Caches expensive counts for metrics and live views, so that counting uses a bounded share of a reader thread. */
import type { Clock } from './clock.js'

export interface CountRest {
  /** How long a count is used at least, ms. */
  readonly holdsMs: number
  /** Pause after a count, as a multiple of its duration. */
  readonly rest: number
  /** Callers that arrive later than this after the pause wait for the next count, ms. */
  readonly patienceMs: number
}

const SCRAPED: CountRest = { holdsMs: 10_000, rest: 50, patienceMs: Infinity }
/** For figures that people watch: newer, at a 200th of a thread, and current at the first look. */
export const WATCHED: CountRest = { holdsMs: 1_000, rest: 200, patienceMs: 2_000 }

/**
 * Caches an expensive count: a scrape gets the last value while a new one is computed in the background.
 *
 * The pause between counts grows with their duration, so counting uses at most a fiftieth of a reader thread by default. Only the first count can fail a
 * scrape; later failures keep the last value.
 */
export function cachedCount<T>(
  clock: Clock,
  count: () => Promise<T>,
  { holdsMs, rest, patienceMs }: CountRest = SCRAPED,
): () => Promise<T> {
  let last: { readonly value: T; readonly until: number } | undefined
  let counting: Promise<T> | undefined

  async function countNow(): Promise<T> {
    const started = clock.monotonic()
    const value = await count()
    const ended = clock.monotonic()
    last = { value, until: ended + Math.max(holdsMs, rest * (ended - started)) }
    return value
  }

  return async () => {
    if (last && clock.monotonic() < last.until) return last.value
    counting ??= countNow().finally(() => (counting = undefined))
    if (!last) return counting
    const { value, until } = last
    const next = counting.catch(() => value)
    return clock.monotonic() < until + patienceMs ? value : next
  }
}
