/**
 * Wall-clock time in a time zone, from Intl. An unknown zone is treated as UTC.
 *
 * Formatters are cached because creating one costs as much as rendering a message.
 */

/** Returns a formatted part; empty if it was not requested. */
export type ShownParts = (part: Intl.DateTimeFormatPartTypes) => string

const MAX_ZONES = 100

/** @param options parts to format, in English with Latin digits; the returned function takes ms since epoch UTC */
export function zoneTime(options: Intl.DateTimeFormatOptions): (at: number, timezone: string) => ShownParts {
  const formats = new Map<string, Intl.DateTimeFormat>()
  return (at, timezone) => {
    const known = formats.get(timezone)
    const format = known ?? formatFor(timezone, options)
    if (!known) {
      if (formats.size >= MAX_ZONES) formats.clear()
      formats.set(timezone, format)
    }
    const shown = format.formatToParts(at)
    return part => shown.find(one => one.type === part)?.value ?? ''
  }
}

function formatFor(timeZone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', { ...options, timeZone })
  } catch {
    return new Intl.DateTimeFormat('en-US', { ...options, timeZone: 'UTC' })
  }
}

/** Between 1 and 5 a.m. in the machine's time zone, when few people send mail. @param now ms since epoch UTC */
export function isQuietHour(now: number): boolean {
  const hour = new Date(now).getHours()
  return hour >= 1 && hour < 5
}
