/** When few people send mail, by the clock on this machine's wall: what can wait is done then. Pure but for the time zone. */

/** From one to five at night. @param now ms since epoch UTC */
export function isQuietHour(now: number): boolean {
  const hour = new Date(now).getHours()
  return hour >= 1 && hour < 5
}
