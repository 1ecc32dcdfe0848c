/**
 * The system tags that tell the day on which a mail is made. Pure. Fails: never throws; a time zone that nobody knows is UTC.
 */

/** @param now ms since epoch UTC @param timezone IANA name */
export function dateTags(
  now: number,
  timezone: string,
): { current_year: string; current_month: string; current_date: string } {
  const parts = { year: 'numeric', month: 'long', day: 'numeric' } as const
  const shown = formatter(timezone, parts).formatToParts(now)
  const part = (type: string) => shown.find(one => one.type === type)?.value ?? ''
  return {
    current_year: part('year'),
    current_month: part('month'),
    current_date: `${part('month')} ${part('day')}, ${part('year')}`,
  }
}

function formatter(timezone: string, parts: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', { ...parts, timeZone: timezone })
  } catch {
    return new Intl.DateTimeFormat('en-US', { ...parts, timeZone: 'UTC' })
  }
}
