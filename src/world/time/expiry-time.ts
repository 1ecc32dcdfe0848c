/**
 * The time by which things expire: the machine's clock, unless that was set forward meanwhile.
 *
 * For what is kept for a while and stamped with a moment in the database (kept answers, whatever retention deletes, keys that
 * retire): who sets the clock forward by mistake must not lose it. It is the earlier of the clock and of the clock as it was
 * at the start plus what has passed since; so after a step forward, or a machine's sleep, things expire late until the next
 * start, and never early. Fails: never.
 */
import type { Clock } from './clock.js'

/** @returns ms since epoch UTC */
export function openExpiryTime(clock: Pick<Clock, 'now' | 'monotonic'>): () => number {
  const offset = clock.now() - clock.monotonic()
  return () => Math.min(clock.now(), clock.monotonic() + offset)
}
