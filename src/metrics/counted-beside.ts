/**
 * A count that costs something, kept for a while: scrapes get the last one, and a newer is made beside them.
 *
 * Used by the metrics. Pauses grow with what counting takes, so that it has a fiftieth of a reading thread at most. Fails: the first
 * count as what is counted does; later ones leave the last.
 */
import type { Clock } from '../world/time/clock.js'

const HOLDS_MS = 10_000
/** Of the time that it took. */
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
