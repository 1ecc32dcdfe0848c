/**
 * A campaign's send window: hours of the day and days of the week, in the workspace's time zone.
 *
 * Checked by the runner for the current time only, never computed ahead, so changes of the clocks, the zone or the window need no special
 * handling: an hour that occurs twice counts twice, a missing one is skipped. Pure. Fails: AppError validation_error.
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

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

const shown = zoneTime({ weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

function localTime(now: number, timezone: string): { day: number; time: string } {
  const part = shown(now, timezone)
  return { day: DAYS.indexOf(part('weekday')) + 1, time: `${part('hour')}:${part('minute')}` }
}
