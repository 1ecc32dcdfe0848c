/** Validation errors of message fields. Pure. */
import { AppError } from '../../../core/errors.js'
import { hasHeaderBreak } from '../../../mail/compose/header-field.js'

/** @param message includes the field's name, so that it is clear without the path */
export function invalidField(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}

/** @throws AppError validation_error */
export function refuseControls(text: string, path: string): void {
  if (hasHeaderBreak(text)) throw invalidField(path, `${path} contains control characters`)
}
