/**
 * Times of a cron expression, in UTC: five fields, to the minute.
 *
 * Called by the scheduler. node-cron reads the expression; when it comes next is counted here, from a moment that is handed
 * in, because node-cron itself would ask the machine's clock. Day of the month and day of the week both have to fit, as
 * node-cron has it. Pure. Fails: what is no such expression, or never comes, throws a plain Error.
 */
import { parse } from 'node-cron'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** A 29th of February on a given weekday comes every 28 years, and 2100 has none. */
const MOST_DAYS = 41 * 366

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
      for (let days = 0; days < MOST_DAYS;) {
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
      throw new Error(`the schedule "${expression}" never comes`)
    },
  }
}

function fieldsOf(expression: string) {
  // A sixth field would be seconds; @daily and its like say nothing that five fields do not.
  if (!/^(\S+ ){4}\S+$/.test(expression)) throw new Error(`"${expression}" is no schedule: five fields`)
  const fields = parse(expression)
  for (const value of [...fields.dayOfMonth, ...fields.dayOfWeek])
    if (typeof value !== 'number') throw new Error(`"${expression}" is no schedule: ${value} is not known`)
  return fields
}

function dayTest({ dayOfMonth, month, dayOfWeek }: ReturnType<typeof parse>): (date: Date) => boolean {
  const [days, months, weekdays] = [new Set(dayOfMonth), new Set(month), new Set(dayOfWeek)]
  return date =>
    months.has(date.getUTCMonth() + 1) && days.has(date.getUTCDate()) && weekdays.has(date.getUTCDay())
}

/** Days, hours and minutes of UTC all begin at multiples of their length. */
function startOf(moment: number, lengthMs: number): number {
  return Math.floor(moment / lengthMs) * lengthMs
}
