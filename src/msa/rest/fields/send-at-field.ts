/**
 * Reads `send_at`: when a mail is to leave.
 *
 * Called by `send-email.ts`. Pure. Fails: AppError validation_error, invalid_schedule.
 */
import { AppError } from '../../../core/errors.js'
import { readMoment } from '../../../core/read-moment.js'
import { noMoment } from '../../../http/time-range.js'

const HORIZON_MS = 72 * 3_600_000

/** Whether `send_at` is a moment at all. @throws AppError validation_error */
export function readSendAt(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = readMoment(text)
  if (moment === undefined) throw noMoment('send_at', text)
  return moment
}

/** Whether it can be scheduled for then. @throws AppError invalid_schedule */
export function checkSendAt(sendAt: number | undefined, now: number): void {
  if (sendAt === undefined) return
  if (sendAt <= now) throw invalidSchedule('send_at must be in the future')
  if (sendAt > now + HORIZON_MS) throw invalidSchedule('send_at must be within 72 hours')
}

function invalidSchedule(message: string): AppError {
  return new AppError('invalid_schedule', message, { path: 'send_at' })
}

/** What stands in the way of a scheduled send that could not be queued is ours: the contract has a code for it. */
export function asScheduleFailure(error: unknown): unknown {
  return error instanceof AppError
    ? error
    : new AppError('schedule_failed', 'the mail could not be scheduled; try again', { cause: error })
}
