/** How long a peer may take to send or read a number of bytes: at least a minute, more for large bodies at a minimum rate. */

const MIN_MS = 60_000
/** 1 Mbit/s. */
const MIN_OCTETS_PER_SECOND = 128 * 1_024

/** @returns ms for all of them */
export function timeForOctets(octets: number): number {
  return MIN_MS + (octets / MIN_OCTETS_PER_SECOND) * 1_000
}
