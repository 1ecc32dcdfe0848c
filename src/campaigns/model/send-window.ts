/**
 * A campaign's send window: hours of the day and days of the week, in the workspace's time zone.
 *
 * The runner checks it for the current time, so an hour that occurs twice counts twice, and a missing one is skipped. When it opens next is
 * computed for people and to wake the runner, who checks again then. Pure. Fails: AppError validation_error.
 */
import { AppError } from '../../core/errors.js'
import { zoneTime } from '../../world/time/zone-time.js'

export interface SendWindow {
  /** Opening days, 1 = Monday to 7 = Sunday; absent: every day. */
  readonly days?: readonly number[]
  /** `HH:MM`, inclusive. */
  readonly from: string
  /** `HH:MM`, exclusive; if before `from`, on the next day. */
  readonly until: string
}

export const CLOCK_TIME = '^([01][0-9]|2[0-3]):[0-5][0-9]$'

/** @throws AppError validation_error */
export function checkSendWindow({ from, until }: SendWindow): void {
  for (const [field, text] of Object.entries({ from, until }))
    if (!new RegExp(CLOCK_TIME).test(text))
      throw new AppError('validation_error', `send_window.${field} must be a time as 09:00`, {
        path: `send_window.${field}`,
      })
  if (from === until)
    throw new AppError('validation_error', 'send_window.from and send_window.until are the same time', {
      path: 'send_window.until',
    })
}

/** @param now ms since epoch UTC @param timezone IANA name; an unknown one means UTC */
export function isWithin({ days, from, until }: SendWindow, now: number, timezone: string): boolean {
  const { day, time } = localTime(now, timezone)
  const opensOn = (one: number) => days === undefined || days.includes(one)
  if (from < until) return opensOn(day) && time >= from && time < until
  // A window that crosses midnight belongs to the day on which it opened.
  return (opensOn(day) && time >= from) || (opensOn(day === 1 ? 7 : day - 1) && time < until)
}

const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440
const WEEK_MINUTES = 7 * DAY_MINUTES
/** From one opening time to the next: at most a week of closed days, and changes of the clocks between. */
const MAX_HOPS = 32

/**
 * When a closed window opens next, on the minute.
 *
 * @returns ms since epoch UTC, `now` if it is open; undefined if it never opens
 */
export function opensAt(window: SendWindow, now: number, timezone: string): number | undefined {
  if (isWithin(window, now, timezone)) return now
  const opening = minuteOf(window.from)
  let at = Math.floor(now / MINUTE_MS)
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const local = weekMinute(at, timezone)
    const wait = (opening - (local % DAY_MINUTES) + DAY_MINUTES - 1) % DAY_MINUTES
    // While the clocks are not changed it cannot open before its opening time.
    at = changeOfClocks(at, at + wait + 1, timezone) ?? at + wait + 1
    if (isWithin(window, at * MINUTE_MS, timezone)) return at * MINUTE_MS
  }
  return undefined
}

/** The first minute in (first, last] at which the local time is not what it would be if it had gone on evenly. */
function changeOfClocks(first: number, last: number, timezone: string): number | undefined {
  const start = weekMinute(first, timezone)
  const isEven = (minute: number) => weekMinute(minute, timezone) === (start + minute - first) % WEEK_MINUTES
  if (isEven(last)) return undefined
  let [even, changed] = [first, last]
  while (changed - even > 1) {
    const middle = Math.floor((even + changed) / 2)
    if (isEven(middle)) even = middle
    else changed = middle
  }
  return changed
}

/** Minutes since Monday's midnight. @param minute since epoch UTC */
function weekMinute(minute: number, timezone: string): number {
  const { day, time } = localTime(minute * MINUTE_MS, timezone)
  return (day - 1) * DAY_MINUTES + minuteOf(time)
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

const shown = zoneTime({ weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

function localTime(now: number, timezone: string): { day: number; time: string } {
  const part = shown(now, timezone)
  return { day: DAYS.indexOf(part('weekday')) + 1, time: `${part('hour')}:${part('minute')}` }
}
