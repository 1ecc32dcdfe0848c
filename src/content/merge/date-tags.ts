/**
 * The system tags that tell the day on which a mail is made. Pure. Fails: never throws; a time zone that nobody knows is UTC.
 */
import { zoneTime } from '../../world/time/zone-time.js'

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

const shown = zoneTime({ year: 'numeric', month: 'long', day: 'numeric' })

function tagsOf(now: number, timezone: string): DateTags {
  const part = shown(now, timezone)
  return {
    current_year: part('year'),
    current_month: part('month'),
    current_date: `${part('month')} ${part('day')}, ${part('year')}`,
  }
}
