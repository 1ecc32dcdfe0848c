/**
 * Moments as header fields write them.
 *
 * Called by whatever writes Date and Received fields, and delivery status notifications. Pure.
 * Standards: RFC 5322 §3.3 (date-time); GMT is obsolete syntax (§4.3). Fails: RangeError for what is no moment.
 */

/** @param moment ms since epoch UTC. @returns e.g. `Mon, 05 Jan 2026 07:08:09 +0000` */
export function headerDate(moment: number): string {
  return new Date(moment).toUTCString().replace('GMT', '+0000')
}
