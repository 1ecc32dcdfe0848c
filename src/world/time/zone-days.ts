/**
 * Calendar days and times of day in a time zone. Pure; an unknown zone is treated as UTC.
 *
 * A time that a zone skips when its clocks go forward is later by what is skipped; of one that occurs twice the first counts. So every day
 * begins at one moment, in order, whether it has 23, 24 or 25 hours.
 */
import { zoneTime } from './zone-time.js'

/** A calendar day as its midnight in UTC, ms since epoch; add `DAY_MS` for the next day. */
export type Day = number

export const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Offsets before 1900 are those of 1900: most zones were local mean time, and `Intl` prints earlier years in other eras. */
const FIRST_OFFSET_AT = Date.UTC(1900, 0, 1)

const formatParts = zoneTime({
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
  hourCycle: 'h23',
  calendar: 'gregory',
  numberingSystem: 'latn',
})

/** Local time minus UTC, ms. @param at ms since epoch UTC */
function offsetAt(at: number, timezone: string): number {
  if (timezone === 'UTC') return 0
  const second = Math.floor(Math.max(at, FIRST_OFFSET_AT) / 1_000) * 1_000
  const parts = formatParts(second, timezone)
  const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts(type))
  return (
    Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second')) -
    second
  )
}

/** The zone's wall-clock time, encoded as if it were UTC. @param at ms since epoch UTC */
export function wallClockAt(at: number, timezone: string): number {
  return at + offsetAt(at, timezone)
}

/** @param at ms since epoch UTC */
export function dayAt(at: number, timezone: string): Day {
  return Math.floor(wallClockAt(at, timezone) / DAY_MS) * DAY_MS
}

/** @param time `HH:MM` @returns ms since epoch UTC */
export function momentOf(day: Day, time: string, timezone: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  const wanted = day + (hours * 60 + minutes) * MINUTE_MS
  // UTC offsets before and after any transition near that time.
  const offsets = [offsetAt(wanted - DAY_MS, timezone), offsetAt(wanted + DAY_MS, timezone)]
  const matches = offsets.map(offset => wanted - offset).filter(at => at + offsetAt(at, timezone) === wanted)
  // In the gap of a transition nothing matches; the offset before it moves the time forward.
  return matches.length > 0 ? Math.min(...matches) : wanted - (offsets[0] ?? 0)
}

/** @returns the day's first moment, ms since epoch UTC; its end is the start of the next */
export function startOfDay(day: Day, timezone: string): number {
  return momentOf(day, '00:00', timezone)
}

/** The time between the midnights of a date in UTC and in another time zone: moments, ms since epoch UTC, `to` exclusive. */
export interface MidnightShift {
  /** Place of the date in the given days; their number for the end of the last one. */
  readonly at: number
  readonly from: number
  readonly to: number
  /** 1: it belongs to that date, and in UTC to the one before. -1: the other way round. */
  readonly sign: 1 | -1
}

/**
 * How counts of UTC days become counts of the same dates in another time zone.
 *
 * @param days consecutive, oldest first @returns none for days that begin and end as in UTC
 */
export function midnightShifts(days: readonly Day[], timezone: string): MidnightShift[] {
  const end = (days.at(-1) ?? 0) + DAY_MS
  return [...days, end].flatMap((day, at): MidnightShift[] => {
    const start = startOfDay(day, timezone)
    if (start === day) return []
    return start < day ? [{ at, from: start, to: day, sign: 1 }] : [{ at, from: day, to: start, sign: -1 }]
  })
}

/**
 * The count of a date in the time zone.
 *
 * @param at place of the date @param inUtc its count in UTC @param between counts of the shifts, by their `at`
 */
export function shiftedCount(
  at: number,
  inUtc: number,
  shifts: readonly MidnightShift[],
  between: (shift: MidnightShift) => number,
): number {
  const sum = shifts.reduce((sum, shift) => {
    if (shift.at === at) return sum + shift.sign * between(shift)
    return shift.at === at + 1 ? sum - shift.sign * between(shift) : sum
  }, inUtc)
  // Below 0 only while expired counters are being deleted.
  return Math.max(0, sum)
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
