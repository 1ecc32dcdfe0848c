/**
 * What clocks show in a time zone, by Intl.
 *
 * Called by whoever reads dates or times of day by the clocks of a workspace. A zone that nobody knows is UTC. Pure but for its memory:
 * making a format takes as long as rendering a mail, so that those of the last zones are kept. Fails: never.
 */

/** A part of what is shown, as text; empty where it was not asked for. */
export type ShownParts = (part: Intl.DateTimeFormatPartTypes) => string

const MOST_ZONES = 100

/**
 * @param options which parts, in English words and Latin digits
 * @returns what is shown @param at ms since epoch UTC
 */
export function zoneTime(options: Intl.DateTimeFormatOptions): (at: number, timezone: string) => ShownParts {
  const formats = new Map<string, Intl.DateTimeFormat>()
  return (at, timezone) => {
    const known = formats.get(timezone)
    const format = known ?? formatFor(timezone, options)
    if (!known) {
      if (formats.size >= MOST_ZONES) formats.clear()
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
