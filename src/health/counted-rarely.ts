/** Caches a count for `/health` for ten seconds. Fails: never. */
import type { Clock } from '../world/time/clock.js'

const HOLDS_MS = 10_000

/** @returns undefined if the database cannot be read; the database check reports that itself */
export function countedRarely(clock: Clock, count: () => Promise<number>): () => Promise<number | undefined> {
  let counted: { readonly at: number; readonly count: Promise<number | undefined> } | undefined
  return () => {
    const now = clock.monotonic()
    if (!counted || now - counted.at >= HOLDS_MS) counted = { at: now, count: count().catch(() => undefined) }
    return counted.count
  }
}
