/**
 * The time used for expiry, protected against the system clock being set forward.
 *
 * For rows that expire by a stored moment (stored responses, retention, retired keys): a clock set forward by mistake must not delete
 * them. It is the earlier of the system clock and of the clock at startup plus the monotonic time elapsed. After a forward step or a
 * suspend, things expire late until the next start, never early.
 */
import type { Clock } from './clock.js'

/** @returns ms since epoch UTC */
export function openExpiryTime(clock: Pick<Clock, 'now' | 'monotonic'>): () => number {
  const offset = clock.now() - clock.monotonic()
  return () => Math.floor(Math.min(clock.now(), clock.monotonic() + offset))
}
