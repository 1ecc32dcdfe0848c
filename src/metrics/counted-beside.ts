/**
 * Caches an expensive count for metrics: a scrape gets the last value while a new one is computed in the background.
 *
 * The pause between counts grows with their duration, so counting uses at most a fiftieth of a reader thread. Fails: only the first
 * count can fail a scrape; later failures keep the last value.
 */
import type { Clock } from '../world/time/clock.js'

const HOLDS_MS = 10_000
/** Pause after a count, as a multiple of its duration. */
const REST = 50

export function countedBeside<T>(clock: Clock, count: () => Promise<T>): () => Promise<T> {
  let last: { readonly value: T; readonly until: number } | undefined
  let counting: Promise<T> | undefined

  async function countNow(): Promise<T> {
    const started = clock.monotonic()
    const value = await count()
    const ended = clock.monotonic()
    last = { value, until: ended + Math.max(HOLDS_MS, REST * (ended - started)) }
    return value
  }

  return async () => {
    if (last && clock.monotonic() < last.until) return last.value
    counting ??= countNow().finally(() => (counting = undefined))
    if (!last) return counting
    counting.catch(() => {})
    return last.value
  }
}
