/** Fields of date and time, which hold the viewer's own time, e.g. `2026-03-01T09:30`, and dates in a time zone. Pure. */

/** @param ms since epoch */
export function toLocalField(ms: number): string {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** @returns RFC 3339, in UTC */
export function fromLocalField(text: string): string {
  return new Date(text).toISOString()
}

/** @param timeZone IANA name @returns converts RFC 3339 to the date there, e.g. `2026-03-01` */
export function calendarOf(timeZone: string): (time: string) => string {
  // Swedish dates are ISO 8601.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  return time => format.format(new Date(time))
}
