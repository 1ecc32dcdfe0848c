/** How many events are set aside, for `/health`: counted at most once in ten seconds, however often it is asked. Fails: never. */
import type { Queries } from '../db/database.js'
import { countSetAside } from '../events/set-aside-store.js'
import type { Clock } from '../world/time/clock.js'

const HOLDS_MS = 10_000

/** @returns undefined where the database cannot be read: that is told otherwise */
export function setAsideCount(reader: Queries, clock: Clock): () => Promise<number | undefined> {
  let counted: { readonly at: number; readonly count: Promise<number | undefined> } | undefined
  return () => {
    const now = clock.monotonic()
    if (!counted || now - counted.at >= HOLDS_MS)
      counted = { at: now, count: countSetAside(reader).catch(() => undefined) }
    return counted.count
  }
}
