/**
 * When a feed is due: at a time of day, every day, on a weekday, or on a day of the month, in a time zone. Pure.
 *
 * A time that the zone skips when its clocks go forward comes as much later; one that occurs twice counts once, the first time.
 */
import { zoneTime } from '../../world/time/zone-time.js'

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

const DAY_MS = 86_400_000
/** Two months, so that a monthly time lies in between. */
const MAX_DAYS = 63

/** @param after ms since epoch UTC @param timezone IANA name; an unknown one means UTC @returns the first time after it */
export function nextTime(schedule: FeedSchedule, after: number, timezone: string): number {
  const [hour = 0, minute = 0] = schedule.at.split(':').map(Number)
  // The day before, since the zone's date may be behind the one computed here.
  const from = startOfDay(after + offsetAt(after, timezone)) - DAY_MS
  for (let day = 0; day <= MAX_DAYS; day += 1) {
    const date = from + day * DAY_MS
    if (!isOn(schedule, new Date(date))) continue
    const time = instantOf(date + (hour * 60 + minute) * 60_000, timezone)
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

/** @param local a local time as if it were UTC @returns the instant; of two the first, of none the one as much later as is skipped */
function instantOf(local: number, timezone: string): number {
  const before = local - offsetAt(local - DAY_MS, timezone)
  const after = local - offsetAt(local + DAY_MS, timezone)
  for (const instant of [Math.min(before, after), Math.max(before, after)])
    if (instant + offsetAt(instant, timezone) === local) return instant
  return before
}

const shown = zoneTime({
  ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
  ...{ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' },
})

/** Local time minus UTC, ms. */
function offsetAt(at: number, timezone: string): number {
  const part = shown(at, timezone)
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = [
    ...[part('year'), part('month'), part('day')],
    ...[part('hour'), part('minute'), part('second')],
  ].map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1_000) * 1_000
}

function startOfDay(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS
}
