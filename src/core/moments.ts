/**
 * Timestamps of the API: formats them as ISO 8601 in UTC, and parses any ISO 8601 form that programs commonly write. Internally they are ms
 * since epoch UTC.
 *
 * Text without a zone is UTC, whatever the system time zone. A date alone is its midnight, or includes the whole day at the end of a range.
 * Unlike `Date.parse`, invalid days are rejected instead of rolling over into the next month. Never throws.
 * Standards: ISO 8601-1:2019 §5.2 (dates: calendar, ordinal, week; basic and extended), §5.3 (times, zones); RFC 3339 §5.6 (space instead
 * of T, lower case).
 */

/** The last result: consecutive calls often have the same timestamp. */
let known: { readonly at: number; readonly text: string } = { at: NaN, text: '' }

export function isoTime(at: number): string {
  if (at !== known.at) known = { at, text: new Date(at).toISOString() }
  return known.text
}

export function isoTimeOrNull(at: number | null | undefined): string | null {
  return at === null || at === undefined ? null : isoTime(at)
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Calendar date, ordinal date or week date, with or without hyphens. */
const DATE =
  /^(?<year>\d{4})(?:-(?<month>\d{2})-(?<day>\d{2})|(?<basic>\d{4})|-?W(?<week>\d{2})-?(?<weekday>[1-7])|-?(?<ordinal>\d{3}))$/

/** Hours, optional minutes and seconds; a fraction, after a point or comma, applies to the last of them. */
const TIME = /^(?<hour>\d{2})(?::?(?<minute>\d{2})(?::?(?<second>\d{2}))?)?(?:[.,](?<fraction>\d{1,30}))?$/

/** The zone; an unencoded plus in a query string arrives as a space. */
const ZONE = /(?:Z|(?<sign>[-+\u2212 ])(?<hours>\d{2})(?::?(?<minutes>\d{2}))?)$/

const MAX_CHARACTERS = 64

/** A timestamp; a date alone is its midnight. @returns ms since epoch UTC, or undefined if invalid */
export function readMoment(text: string): number | undefined {
  return read(text)?.at
}

/** A timestamp, or a date alone. `at` is ms since epoch UTC, of a date alone its midnight in UTC. */
export interface DateOrMoment {
  readonly at: number
  readonly isDay: boolean
}

/** @returns undefined if invalid */
export function readDateOrMoment(text: string): DateOrMoment | undefined {
  return read(text)
}

/** The exclusive end of a range. A date alone is included, so its range ends at the next midnight. */
export function readRangeEnd(text: string): number | undefined {
  const found = read(text)
  return found && (found.isDay ? found.at + DAY_MS : found.at)
}

function read(text: string): DateOrMoment | undefined {
  if (text.length > MAX_CHARACTERS) return undefined
  const [, date = '', clock] = /^([^T ]+)(?:[T ](.+))?$/.exec(text.trim().toUpperCase()) ?? []
  const day = readDate(date)
  if (day === undefined) return undefined
  if (clock === undefined) return { at: day, isDay: true }
  const sinceMidnight = readClock(clock)
  return sinceMidnight === undefined ? undefined : { at: day + sinceMidnight, isDay: false }
}

/** @returns midnight UTC of that day */
function readDate(text: string): number | undefined {
  const parts = DATE.exec(text)?.groups
  if (!parts) return undefined
  const { month, day, basic, week, weekday, ordinal } = parts
  const year = Number(parts['year'])
  if (week !== undefined) return weekDate(year, Number(week), Number(weekday))
  if (ordinal !== undefined) return dayOfYear(year, Number(ordinal))
  return basic === undefined
    ? calendarDate(year, Number(month), Number(day))
    : calendarDate(year, Number(basic.slice(0, 2)), Number(basic.slice(2)))
}

function calendarDate(year: number, month: number, day: number): number | undefined {
  const at = startOf(year, month, day)
  const date = new Date(at)
  return date.getUTCMonth() + 1 === month && date.getUTCDate() === day ? at : undefined
}

function dayOfYear(year: number, day: number): number | undefined {
  const at = startOf(year, 1, day)
  return day > 0 && new Date(at).getUTCFullYear() === year ? at : undefined
}

/** Weeks begin on Monday; week 1 contains 4 January. */
function weekDate(year: number, week: number, weekday: number): number | undefined {
  if (week === 0 || week > weeksOf(year)) return undefined
  const fourth = startOf(year, 1, 4)
  return fourth + ((week - 1) * 7 + (weekday - isoWeekday(fourth))) * DAY_MS
}

/** 53 if the year starts or ends on a Thursday. */
function weeksOf(year: number): 52 | 53 {
  const hasThursday = isoWeekday(startOf(year, 1, 1)) === 4 || isoWeekday(startOf(year, 12, 31)) === 4
  return hasThursday ? 53 : 52
}

/** 1 is Monday. */
function isoWeekday(at: number): number {
  return new Date(at).getUTCDay() || 7
}

/** Unlike `Date.UTC`, does not map years below 100 to 19xx. */
function startOf(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month - 1, day)
}

/** @returns ms since midnight UTC of the given day; negative or over a day if the zone shifts it */
function readClock(text: string): number | undefined {
  const zone = ZONE.exec(text)
  // A hyphen as in `10:00-05` always starts a zone; `100500` has none.
  const offset = zone ? readOffset(zone.groups ?? {}) : 0
  const time = TIME.exec(zone ? text.slice(0, zone.index) : text)?.groups
  if (!time || offset === undefined) return undefined
  const [hour, minute, second] = [time['hour'], time['minute'], time['second']].map(part => Number(part ?? 0))
  if (hour === undefined || minute === undefined || second === undefined) return undefined
  const unit =
    time['second'] !== undefined ? 1_000 : time['minute'] !== undefined ? MINUTE_MS : 60 * MINUTE_MS
  const ms =
    (hour * 60 + minute) * MINUTE_MS + second * 1_000 + wholeMs(Number(`0.${time['fraction'] ?? 0}`) * unit)
  // 24:00 is the end of the day; :60 is a leap second, which no clock here counts.
  const isWithin =
    hour < 24 ? minute < 60 && (second < 60 || (minute === 59 && second === 60)) : ms === DAY_MS
  return isWithin ? ms - offset : undefined
}

/** Truncates to ms, with a tolerance for rounding: 0.57 * 1000 is slightly below 570. */
function wholeMs(product: number): number {
  return Math.floor(product + 1e-7)
}

/** @returns offset from UTC in ms, positive if ahead */
function readOffset({
  sign,
  hours,
  minutes,
}: Readonly<Record<string, string | undefined>>): number | undefined {
  if (hours === undefined) return 0
  const [hour, minute] = [Number(hours), Number(minutes ?? 0)]
  if (hour > 23 || minute > 59) return undefined
  const ahead = (hour * 60 + minute) * MINUTE_MS
  return sign === '-' || sign === '\u2212' ? -ahead : ahead
}
