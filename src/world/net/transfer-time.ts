/**
 * How long a peer may take to send or to fetch so many octets: a minute, and more the more there is.
 *
 * Used by the HTTP side for request bodies and for answers. Whoever keeps to the slowest rate is never cut off, however much
 * it is; whoever stalls is after a minute.
 */

const AT_LEAST_MS = 60_000
/** 1 Mbit/s, the uplink of a poor line. */
const SLOWEST_OCTETS_PER_SECOND = 128 * 1_024

/** @returns ms, of all octets together */
export function timeForOctets(octets: number): number {
  return AT_LEAST_MS + (octets / SLOWEST_OCTETS_PER_SECOND) * 1_000
}
