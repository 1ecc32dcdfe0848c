/**
 * Compiles tests of dates to SQL. Days are days of the workspace's time zone.
 *
 * Used by `conditions-store.ts`. A timestamp is a moment and falls on a day of the zone. An attribute without a time (`2026-01-05`) is that
 * calendar day in any zone; it is stored as its midnight in UTC and therefore compared with days, never with moments.
 */
import { sql, type RawBuilder } from 'kysely'
import type { DateOrMoment } from '../../core/moments.js'
import type { Dialect } from '../../db/database.js'
import { DAY_MS, dayAt, startOfDay, wallClockAt, type Day } from '../../world/time/zone-days.js'
import type { Test } from './read-conditions.js'
import { real, SIGNS, type Condition, type Values } from './value-tests-store.js'

const DATE_KINDS = ['moment', 'moment_is', 'date_order', 'within_days', 'in_next_days'] as const
type DateTest = Extract<Test, { kind: (typeof DATE_KINDS)[number] }>

export function isDateTest(test: Test): test is DateTest {
  return (DATE_KINDS as readonly string[]).includes(test.kind)
}

/** Context of a date test, beside its rule. */
export interface DateContext {
  readonly dialect: Dialect
  /** Ms since epoch UTC. */
  readonly now: number
  /** IANA name. */
  readonly timezone: string
}

/** Without negation. */
export function compileDateTest(test: DateTest, values: Values, context: DateContext): Condition {
  const { moment } = values
  const { now, timezone } = context
  switch (test.kind) {
    case 'moment':
      return sql<boolean>`${moment} ${SIGNS[test.order]} ${momentOfDate(test.value, timezone)}`
    case 'moment_is': {
      const { at, isDay } = test.value
      if (!isDay) return sql<boolean>`${moment} = ${at}`
      return isWithin(moment, startOfDay(at, timezone), startOfDay(at + DAY_MS, timezone))
    }
    case 'date_order': {
      const { at, isDay } = test.value
      const isOrdered = (bound: number) => sql<boolean>`${moment} ${SIGNS[test.order]} ${real(bound)}`
      const bounds = [momentOfDate(test.value, timezone), isDay ? at : wallClockAt(at, timezone)] as const
      return bounds[0] === bounds[1]
        ? isOrdered(bounds[0])
        : byKind(values, isOrdered(bounds[0]), isOrdered(bounds[1]))
    }
    case 'within_days': {
      const today = dayAt(now, timezone)
      const from = Math.round(now - test.days * DAY_MS)
      return byKind(
        values,
        sql<boolean>`${moment} between ${real(from)} and ${real(now)}`,
        sql<boolean>`${moment} between ${real(today - Math.floor(test.days) * DAY_MS)} and ${real(today)}`,
      )
    }
    case 'in_next_days':
      return test.isYearly
        ? compileYearly(test.days, values, context)
        : compileUpcoming(test, values, context)
  }
}

function momentOfDate({ at, isDay }: DateOrMoment, timezone: string): number {
  return isDay ? startOfDay(at, timezone) : at
}

/** @param isMet for moments @param isMetByDay for dates without a time */
function byKind({ isDay }: Values, isMet: Condition, isMetByDay: Condition): Condition {
  return isDay === undefined ? isMet : sql<boolean>`(case when ${isDay} then ${isMetByDay} else ${isMet} end)`
}

/** @param end exclusive */
function isWithin(moment: RawBuilder<unknown>, start: number, end: number): Condition {
  return sql<boolean>`(${moment} >= ${real(start)} and ${moment} < ${real(end)})`
}

function compileUpcoming(
  { days }: Extract<Test, { kind: 'in_next_days' }>,
  values: Values,
  { now, timezone }: DateContext,
): Condition {
  const today = dayAt(now, timezone)
  const end = today + (days + 1) * DAY_MS
  const ofMoments = [startOfDay(today, timezone), startOfDay(end, timezone)] as const
  const isUpcoming = isWithin(values.moment, ...ofMoments)
  return ofMoments[0] === today && ofMoments[1] === end
    ? isUpcoming
    : byKind(values, isUpcoming, isWithin(values.moment, today, end))
}

/** The day of the year, whatever the year. */
function compileYearly(days: number, values: Values, { dialect, now, timezone }: DateContext): Condition {
  const { moment } = values
  const today = dayAt(now, timezone)
  const window = daysOfYear(today, days)
  if (!window) return sql<boolean>`${moment} is not null`
  const isOnDays = isInDaysOfYear(moment, window, dialect)
  if (timezone === 'UTC') return isOnDays
  // A moment is at most a day away from its day in the zone: only what lies near is compared with the ranges of all years.
  const near = daysOfYear(today - DAY_MS, days + 2)
  const isInRange = isInAnyRange(moment, rangesOf(window, timezone), dialect)
  const isMoment = near
    ? sql<boolean>`(${isInDaysOfYear(moment, near, dialect)} and ${isInRange})`
    : isInRange
  return byKind(values, isMoment, isOnDays)
}

/** `MMDD` of the first day and of the day after the last; `until` <= `from` for a range across New Year. */
interface DaysOfYear {
  readonly from: string
  readonly until: string
}

/** @returns undefined for the whole year; without 29 February in a year without one, so that the 28th covers it */
function daysOfYear(today: Day, days: number): DaysOfYear | undefined {
  if (days >= 365) return undefined
  return { from: dayOfYear(today), until: dayOfYear(today + (days + 1) * DAY_MS) }
}

function dayOfYear(day: Day): string {
  return new Date(day).toISOString().slice(5, 10).replace('-', '')
}

function isInDaysOfYear(
  moment: RawBuilder<unknown>,
  { from, until }: DaysOfYear,
  dialect: Dialect,
): Condition {
  const day =
    dialect === 'sqlite'
      ? sql`strftime('%m%d', ${moment} / 1000.0, 'unixepoch')`
      : sql`to_char(to_timestamp(${moment} / 1000.0) at time zone 'UTC', 'MMDD')`
  return sql<boolean>`(${day} >= ${from} ${from < until ? sql`and` : sql`or`} ${day} < ${until})`
}

/** @param ranges JSON: `[[start, end], ...]`, ms since epoch UTC, ends exclusive */
function isInAnyRange(moment: RawBuilder<unknown>, ranges: string, dialect: Dialect): Condition {
  const all =
    dialect === 'sqlite'
      ? sql`json_each(${ranges}) as years`
      : sql`jsonb_array_elements(cast(${ranges} as jsonb)) as years (value)`
  const bound = (at: 0 | 1) => sql`cast(years.value ->> ${sql.lit(at)} as double precision)`
  return sql<boolean>`exists (select 1 from ${all} where ${moment} >= ${bound(0)} and ${moment} < ${bound(1)})`
}

/** Years in which moments have an anniversary: an offset from UTC is only known for a given year. */
const YEARS = { first: 1_900, last: 2_100 } as const

/** Computing the ranges of all years takes some 10 ms, and a campaign asks for each batch of contacts. */
const MAX_KNOWN = 100
const known = new Map<string, string>()

/** Those days of each year, as moments. @returns JSON: `[[start, end], ...]`, ms since epoch UTC, ends exclusive */
function rangesOf({ from, until }: DaysOfYear, timezone: string): string {
  const key = `${timezone} ${from} ${until}`
  const found = known.get(key)
  if (found !== undefined) return found
  const ranges: [number, number][] = []
  for (let year = YEARS.first - 1; year <= YEARS.last; year += 1)
    ranges.push([
      startOfDay(dayIn(year, from), timezone),
      startOfDay(dayIn(from < until ? year : year + 1, until), timezone),
    ])
  const text = JSON.stringify(ranges)
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(key, text)
  return text
}

/** 29 February is 1 March in other years. @param text `MMDD` */
function dayIn(year: number, text: string): Day {
  return Date.UTC(year, Number(text.slice(0, 2)) - 1, Number(text.slice(2)))
}
