/** When a mail is due that goes out at its recipient's usual hour. Pure. */
const HOUR_MS = 3_600_000
const DAY_HOURS = 24

/**
 * The next time this hour comes, within 24 hours of the start: at once if it is that hour already.
 *
 * @param startsAt ms since epoch UTC @param hour 0 to 23, UTC; undefined if the recipient has none
 */
export function dueAtHour(startsAt: number, hour: number | undefined): number {
  const thisHour = Math.floor(startsAt / HOUR_MS)
  const wait = hour === undefined ? 0 : (hour - (thisHour % DAY_HOURS) + DAY_HOURS) % DAY_HOURS
  return wait === 0 ? startsAt : (thisHour + wait) * HOUR_MS
}
