/**
 * The system tags that tell the day on which a mail is made. Pure. Fails: never throws; a time zone that nobody knows is UTC.
 */

export interface DateTags {
  readonly current_year: string
  readonly current_month: string
  readonly current_date: string
}

/** A day begins at a quarter of an hour, wherever one is. */
const QUARTER_MS = 900_000

/** All messages of a content have the same date, and most that are made at a time. */
let last: { readonly key: string; readonly tags: DateTags } | undefined

/** @param now ms since epoch UTC @param timezone IANA name */
export function dateTags(now: number, timezone: string): DateTags {
  const key = `${timezone} ${Math.floor(now / QUARTER_MS)}`
  if (last?.key !== key) last = { key, tags: tagsOf(now, timezone) }
  return last.tags
}

function tagsOf(now: number, timezone: string): DateTags {
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
