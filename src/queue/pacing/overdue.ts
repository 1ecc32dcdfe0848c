/**
 * Which deliveries have had their time: those of sites that do not answer, once others wait for their connection.
 *
 * Used by the delivery runner. RFC 5321 §4.5.3.2 gives a server minutes for each reply, and it has them while nobody waits;
 * under pressure a site that has not answered lately gets seconds, twice as many after each time it was broken off
 * (`site-pace.ts`), so that one that is only slow gets through in the end. Pure. What is past the final dot is never broken
 * off: the agent sees to that.
 */
import type { Standing } from './connection-shares.js'
import { FIRST_PATIENCE_MS } from './site-pace.js'
import type { Site, Turn } from './site.js'

/** A delivery in the hands of the agent. */
export interface Begun {
  readonly turn: Turn
  /** Octets of its message that were read for it. */
  readonly octets: number
  /** On the monotonic clock, ms. */
  readonly startedAt: number
  readonly controller: AbortController
  /**
   * `set aside`: broken off, and no longer counted in its share of the connections. `held`: broken off since its campaign is held.
   */
  state: 'under way' | 'broken off' | 'set aside' | 'held'
}

/** What a slow line needs for a large message, in octets per ms. */
const SLOW_LINE = 32

/** Those of these shares of the connections that have had their time. @returns longest under way first */
export function overdue<T extends Begun>(
  begun: Iterable<T>,
  standings: readonly Standing[],
  now: number,
): T[] {
  const found: T[] = []
  for (const delivery of begun)
    if (
      standings.includes(delivery.turn.standing) &&
      isOver(delivery, delivery.turn.site.pace.patienceMs, now)
    )
      found.push(delivery)
  return found.sort((one, other) => one.startedAt - other.startedAt)
}

/** What hangs at a site where, as others have shown, nobody answers; what has only just begun may be the one that succeeds. */
export function hangingAt<T extends Begun>(begun: Iterable<T>, site: Site, now: number): T[] {
  const found: T[] = []
  for (const delivery of begun)
    if (delivery.turn.site === site && isOver(delivery, FIRST_PATIENCE_MS, now)) found.push(delivery)
  return found
}

function isOver({ state, startedAt, octets }: Begun, patienceMs: number, now: number): boolean {
  return state === 'under way' && now - startedAt >= patienceMs + octets / SLOW_LINE
}
