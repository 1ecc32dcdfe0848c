/** Reads `send_at`. Called by `send-email.ts`. Pure. Fails: AppError validation_error, invalid_schedule. */
import { AppError } from '../../../core/errors.js'
import { readMoment } from '../../../core/read-moment.js'
import { noMoment } from '../../../http/time-range.js'

const HORIZON_MS = 72 * 3_600_000

/** @throws AppError validation_error if it is not a time */
export function readSendAt(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = readMoment(text)
  if (moment === undefined) throw noMoment('send_at', text)
  return moment
}

/** @throws AppError invalid_schedule if it is past or too far ahead */
export function checkSendAt(sendAt: number | undefined, now: number): void {
  if (sendAt === undefined) return
  if (sendAt <= now) throw invalidSchedule('send_at must be in the future')
  if (sendAt > now + HORIZON_MS) throw invalidSchedule('send_at must be within 72 hours')
}

function invalidSchedule(message: string): AppError {
  return new AppError('invalid_schedule', message, { path: 'send_at' })
}

/** Maps an internal error of a scheduled send to the contract's `schedule_failed`. */
export function asScheduleFailure(error: unknown): unknown {
  return error instanceof AppError
    ? error
    : new AppError('schedule_failed', 'the mail could not be scheduled; try again', { cause: error })
}
