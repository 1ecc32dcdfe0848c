/** What `/health` tells as a number: counted at most once in ten seconds, however often it is asked. Fails: never. */
import type { Clock } from '../world/time/clock.js'

const HOLDS_MS = 10_000

/** @returns undefined where the database cannot be read: that is told otherwise */
export function countedRarely(clock: Clock, count: () => Promise<number>): () => Promise<number | undefined> {
  let counted: { readonly at: number; readonly count: Promise<number | undefined> } | undefined
  return () => {
    const now = clock.monotonic()
    if (!counted || now - counted.at >= HOLDS_MS) counted = { at: now, count: count().catch(() => undefined) }
    return counted.count
  }
}
