/**
 * The system tags that tell the day on which a mail is made. Pure. Fails: never throws; a time zone that nobody knows is UTC.
 */

/** @param now ms since epoch UTC @param timezone IANA name */
export function dateTags(
  now: number,
  timezone: string,
): { current_year: string; current_month: string; current_date: string } {
  const shown = formatter(timezone).formatToParts(now)
  const part = (type: string) => shown.find(one => one.type === type)?.value ?? ''
  return {
    current_year: part('year'),
    current_month: part('month'),
    current_date: `${part('month')} ${part('day')}, ${part('year')}`,
  }
}

/** Making one takes as long as rendering a mail. */
const formatters = new Map<string, Intl.DateTimeFormat>()
const MOST_FORMATTERS = 100

function formatter(timezone: string): Intl.DateTimeFormat {
  const known = formatters.get(timezone)
  if (known) return known
  const made = makeFormatter(timezone)
  if (formatters.size >= MOST_FORMATTERS) formatters.clear()
  formatters.set(timezone, made)
  return made
}

function makeFormatter(timezone: string): Intl.DateTimeFormat {
  const parts = { year: 'numeric', month: 'long', day: 'numeric' } as const
  try {
    return new Intl.DateTimeFormat('en-US', { ...parts, timeZone: timezone })
  } catch {
    return new Intl.DateTimeFormat('en-US', { ...parts, timeZone: 'UTC' })
  }
}
