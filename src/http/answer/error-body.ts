/** Turns errors into the contract's error responses. Only here do error codes become HTTP statuses. */
import { given } from '../../core/given.js'
import { AppError, ERRORS, type BrokenRule, type ErrorCode, type UsedWindow } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'

export interface ErrorAnswer {
  readonly status: number
  readonly code: ErrorCode
  readonly body: {
    readonly error: {
      readonly code: ErrorCode
      readonly message: string
      readonly path?: string
      readonly rule?: BrokenRule['name']
      readonly limit?: number
    }
  }
  readonly headers: Readonly<Record<string, string>>
}

/** Anything but an AppError becomes internal_error and reveals no details. */
export function errorAnswer(thrown: unknown): ErrorAnswer {
  const error =
    thrown instanceof AppError
      ? thrown
      : new AppError('internal_error', 'unexpected error; it was logged and is safe to retry')
  const { code, message, path, rule, retryAfterMs, window } = error
  return {
    status: ERRORS[code].status,
    code,
    body: { error: { code, message, ...given({ path, rule: rule?.name, limit: rule?.limit }) } },
    // RFC 9110 §10.2.3: whole seconds, rounded up so that waiting exactly that long suffices.
    headers: {
      ...(retryAfterMs === undefined
        ? {}
        : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) }),
      ...(window === undefined ? {} : windowHeaders(window)),
    },
  }
}

/** Rate limit headers of every answer. */
export function windowHeaders({ limit, remaining, resetAt }: UsedWindow): Readonly<Record<string, string>> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': isoTime(resetAt),
  }
}
