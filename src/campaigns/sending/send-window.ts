/**
 * When a campaign may go out: hours of the day and days of the week, in the time zone of its workspace.
 *
 * Asked by the runner before each hand-over. It answers for a moment and never counts ahead, so that a change of the clocks, of the zone or
 * of the window needs no thought: an hour that a day has twice counts twice, one that it lacks is not waited for. Pure.
 * Fails: AppError validation_error for a window that is none.
 */
import { AppError } from '../../core/errors.js'
import { zoneTime } from '../../world/time/zone-time.js'

export interface SendWindow {
  /** Days of the week on which it opens, 1 = Monday to 7 = Sunday; absent: every day. */
  readonly days?: readonly number[]
  /** `HH:MM`, included. */
  readonly from: string
  /** `HH:MM`, not included; before `from`: of the next day. */
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

/** @param now ms since epoch UTC @param timezone IANA name; one that nobody knows is UTC */
export function isWithin({ days, from, until }: SendWindow, now: number, timezone: string): boolean {
  const { day, time } = localTime(now, timezone)
  const opensOn = (one: number) => days === undefined || days.includes(one)
  if (from < until) return opensOn(day) && time >= from && time < until
  // Over midnight: after it, the window is that of the day before.
  return (opensOn(day) && time >= from) || (opensOn(day === 1 ? 7 : day - 1) && time < until)
}

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

const shown = zoneTime({ weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

function localTime(now: number, timezone: string): { day: number; time: string } {
  const part = shown(now, timezone)
  return { day: DAYS.indexOf(part('weekday')) + 1, time: `${part('hour')}:${part('minute')}` }
}
