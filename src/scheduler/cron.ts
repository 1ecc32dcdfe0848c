/**
 * Computes the times of a five-field cron expression, in UTC.
 *
 * node-cron parses the expression. The next time is computed here from a given moment, because node-cron would read the system clock.
 * Day of month and day of week must both match, as in node-cron. Pure. Fails: an invalid expression, or one that never matches,
 * throws a plain Error.
 */
import { parse } from 'node-cron'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** 29 February falls on a given weekday every 28 years, or 40 across 2100, which is not a leap year. */
const MAX_DAYS = 41 * 366

export interface CronTimes {
  /** The first time after this moment; both ms since epoch UTC. */
  after(moment: number): number
}

/** @throws Error naming the expression */
export function readCron(expression: string): CronTimes {
  const fields = fieldsOf(expression)
  const minutes = new Set(fields.minute)
  const hours = new Set(fields.hour)
  const fitsDay = dayTest(fields)
  return {
    after(moment) {
      let time = startOf(moment, MINUTE_MS) + MINUTE_MS
      for (let days = 0; days < MAX_DAYS;) {
        const date = new Date(time)
        if (!fitsDay(date)) {
          time = startOf(time, DAY_MS) + DAY_MS
          days += 1
        } else if (!hours.has(date.getUTCHours())) {
          time = startOf(time, HOUR_MS) + HOUR_MS
        } else if (!minutes.has(date.getUTCMinutes())) {
          time += MINUTE_MS
        } else {
          return time
        }
      }
      throw new Error(`cron expression "${expression}" never matches`)
    },
  }
}

function fieldsOf(expression: string) {
  // node-cron reads a sixth field as seconds; @daily and the like are not needed.
  if (!/^(\S+ ){4}\S+$/.test(expression))
    throw new Error(`"${expression}" is not a cron expression of five fields`)
  const fields = parse(expression)
  for (const value of [...fields.dayOfMonth, ...fields.dayOfWeek])
    if (typeof value !== 'number')
      throw new Error(`"${expression}" is not a cron expression: invalid value ${value}`)
  return fields
}

function dayTest({ dayOfMonth, month, dayOfWeek }: ReturnType<typeof parse>): (date: Date) => boolean {
  const [days, months, weekdays] = [new Set(dayOfMonth), new Set(month), new Set(dayOfWeek)]
  return date =>
    months.has(date.getUTCMonth() + 1) && days.has(date.getUTCDate()) && weekdays.has(date.getUTCDay())
}

/** UTC days, hours and minutes start at multiples of their length. */
function startOf(moment: number, lengthMs: number): number {
  return Math.floor(moment / lengthMs) * lengthMs
}
