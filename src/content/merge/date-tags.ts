/** System tags for the mail's date. Pure. Never throws; an unknown time zone counts as UTC. */
import { zoneTime } from '../../world/time/zone-time.js'

export interface DateTags {
  readonly current_year: string
  readonly current_month: string
  readonly current_date: string
}

/** Days start on a quarter of an hour in every time zone. */
const QUARTER_MS = 900_000

/** Cache of the last result: consecutive messages usually share date and zone. */
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
