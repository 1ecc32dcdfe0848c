/**
 * Calendar days and times of day in a time zone.
 *
 * A time that does not exist (clocks go forward) is moved forward by the gap; of one that occurs twice (clocks go back) the first
 * counts. An unknown zone is treated as UTC. Pure.
 */
import { zoneTime } from '../../world/time/zone-time.js'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** A calendar day as its midnight in UTC, ms since epoch; add 86,400,000 for the next day. */
export type Day = number

const formatParts = zoneTime({
  ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
  ...{ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' },
  ...{ calendar: 'gregory', numberingSystem: 'latn' },
})

/** The zone's wall-clock time, encoded as if it were UTC. @param at ms since epoch UTC */
function wallClockAt(at: number, timezone: string): number {
  const parts = formatParts(at, timezone)
  const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts(type))
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
}

/** @param at ms since epoch UTC */
export function dayAt(at: number, timezone: string): Day {
  return Math.floor(wallClockAt(at, timezone) / DAY_MS) * DAY_MS
}

/** @param time `HH:MM` @returns ms since epoch UTC */
export function momentOf(day: Day, time: string, timezone: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  const wanted = day + (hours * 60 + minutes) * MINUTE_MS
  const offsetAt = (at: number) => wallClockAt(at, timezone) - at
  // UTC offsets before and after any transition near that time.
  const offsets = [offsetAt(wanted - DAY_MS), offsetAt(wanted + DAY_MS)]
  const matches = offsets.map(offset => wanted - offset).filter(at => at + offsetAt(at) === wanted)
  // In the gap of a transition nothing matches; the offset before it moves the time forward.
  return matches.length > 0 ? Math.min(...matches) : wanted - (offsets[0] ?? 0)
}

/** The anniversary in the given year; 29 February becomes the 28th outside leap years. */
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
