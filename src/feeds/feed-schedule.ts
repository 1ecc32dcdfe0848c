/**
 * When a feed is due: at a time of day, every day, on a weekday, or on a day of the month, in a time zone. Pure.
 *
 * A time that the zone skips when its clocks go forward comes as much later; one that occurs twice counts once, the first time.
 */
import { DAY_MS, dayAt, momentOf } from '../world/time/zone-days.js'

export const FREQUENCIES = ['daily', 'weekly', 'monthly'] as const

export interface FeedSchedule {
  readonly every: (typeof FREQUENCIES)[number]
  /** `HH:MM`. */
  readonly at: string
  /** Of `weekly`: 1 = Monday to 7 = Sunday. */
  readonly weekday?: number
  /** Of `monthly`: 1 to 31; shorter months use their last day. */
  readonly day?: number
}

/** Two months, so that a monthly time lies in between. */
const MAX_DAYS = 63

/** @param after ms since epoch UTC @param timezone IANA name; an unknown one means UTC @returns the first time after it */
export function nextTime(schedule: FeedSchedule, after: number, timezone: string): number {
  const from = dayAt(after, timezone)
  for (let day = 0; day <= MAX_DAYS; day += 1) {
    const date = from + day * DAY_MS
    if (!isOn(schedule, new Date(date))) continue
    const time = momentOf(date, schedule.at, timezone)
    if (time > after) return time
  }
  throw new Error(`schedule ${JSON.stringify(schedule)} never matches`)
}

/** @param date midnight UTC of the local date */
function isOn({ every, weekday = 1, day = 1 }: FeedSchedule, date: Date): boolean {
  if (every === 'daily') return true
  if (every === 'weekly') return (date.getUTCDay() || 7) === weekday
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  return date.getUTCDate() === Math.min(day, last)
}
