/**
 * Days and times of day by the clocks of a place: for triggers that come on a date.
 *
 * Pure; what a zone's clocks do is told by Intl. Where a time of day does not exist (clocks go forward) it is so much later, and
 * where it comes twice (clocks go back) it is the first. A zone that nobody knows is UTC.
 */
import { zoneTime } from '../../world/time/zone-time.js'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** A day of the calendar, as its midnight in UTC: days are added by adding 86,400,000. */
export type Day = number

const shown = zoneTime({
  ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
  ...{ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' },
  ...{ calendar: 'gregory', numberingSystem: 'latn' },
})

/** What clocks of the zone show, as if it were UTC. @param at ms since epoch UTC */
function shownAt(at: number, timezone: string): number {
  const parts = shown(at, timezone)
  const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts(type))
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
}

/** The day that it is there. @param at ms since epoch UTC */
export function dayAt(at: number, timezone: string): Day {
  return Math.floor(shownAt(at, timezone) / DAY_MS) * DAY_MS
}

/**
 * When it is that time on that day there, ms since epoch UTC.
 *
 * @param time `HH:MM`
 */
export function momentOf(day: Day, time: string, timezone: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  const wanted = day + (hours * 60 + minutes) * MINUTE_MS
  const offsetAt = (at: number) => shownAt(at, timezone) - at
  // What the clocks are ahead by before and after any change near that time.
  const offsets = [offsetAt(wanted - DAY_MS), offsetAt(wanted + DAY_MS)]
  const fitting = offsets.map(offset => wanted - offset).filter(at => at + offsetAt(at) === wanted)
  // In the gap that clocks leave when they go forward no moment fits: by the clocks of before it is later.
  return fitting.length > 0 ? Math.min(...fitting) : wanted - (offsets[0] ?? 0)
}

/** The day on which a date comes round in that year: the 29th of February is the 28th where there is none. */
export function anniversary(date: Day, year: number): Day {
  const born = new Date(date)
  const [month, day] = [born.getUTCMonth(), born.getUTCDate()]
  const same = Date.UTC(year, month, day)
  return new Date(same).getUTCMonth() === month ? same : Date.UTC(year, month, day - 1)
}

/** `2026-01-05` */
export function isoDay(day: Day): string {
  return new Date(day).toISOString().slice(0, 10)
}
