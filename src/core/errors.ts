/**
 * The one table of errors that a caller of Postroad can meet.
 *
 * Domain code throws `AppError(code, message)` and knows nothing of transports; only `http/` reads the
 * status column and only the SMTP listeners read the reply column. Codes are the contract's; they are
 * added to, never renamed.
 */

interface ErrorRow {
  /** HTTP status of the REST answer. */
  readonly status: number
  /** SMTP reply code and enhanced status code (RFC 5321 §4.2, RFC 3463) of the same refusal. */
  readonly smtp: readonly [code: number, enhanced: string]
}

export const ERRORS = {
  validation_error: { status: 400, smtp: [550, '5.6.0'] },
  unauthorized: { status: 401, smtp: [535, '5.7.8'] },
  forbidden: { status: 403, smtp: [550, '5.7.1'] },
  missing_from_email: { status: 400, smtp: [550, '5.1.7'] },
  domain_invalid: { status: 403, smtp: [550, '5.7.1'] },
  template_not_found: { status: 404, smtp: [550, '5.6.0'] },
  contact_not_found: { status: 404, smtp: [550, '5.1.1'] },
  not_found: { status: 404, smtp: [550, '5.1.1'] },
  workspace_not_found: { status: 404, smtp: [535, '5.7.8'] },
  duplicate: { status: 409, smtp: [550, '5.6.0'] },
  conflict: { status: 409, smtp: [451, '4.3.0'] },
  idempotency_conflict: { status: 409, smtp: [550, '5.6.0'] },
  // If-Match named another state of the resource than the present one.
  precondition_failed: { status: 412, smtp: [550, '5.6.0'] },
  limit_reached: { status: 403, smtp: [451, '4.7.1'] },
  rate_limited: { status: 429, smtp: [451, '4.7.1'] },
  invalid_schedule: { status: 400, smtp: [550, '5.6.0'] },
  schedule_failed: { status: 500, smtp: [451, '4.3.0'] },
  no_content: { status: 400, smtp: [550, '5.6.0'] },
  confirmation_required: { status: 400, smtp: [550, '5.6.0'] },
  // The appliance cannot take it at the moment: disk, database or memory has no room, or another process holds it up.
  unavailable: { status: 503, smtp: [452, '4.3.1'] },
  method_not_allowed: { status: 405, smtp: [550, '5.5.1'] },
  request_timeout: { status: 408, smtp: [451, '4.4.2'] },
  unsupported_media_type: { status: 415, smtp: [550, '5.6.1'] },
  headers_too_large: { status: 431, smtp: [550, '5.5.2'] },
  internal_error: { status: 500, smtp: [451, '4.3.0'] },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS

/** A limit within a sliding window, and how much of it is used. */
export interface UsedWindow {
  readonly limit: number
  readonly remaining: number
  /** Ms since epoch UTC. */
  readonly resetAt: number
}

export interface AppErrorDetails {
  /** Dotted name of the offending field, e.g. `to.3` or `messages.0.subject`. */
  readonly path?: string
  /** For 429, 503 and the like: after how long the same request may succeed, in ms; absent where it never will. */
  readonly retryAfterMs?: number
  /** For `rate_limited`: the window that is used up, where it is not that of requests. */
  readonly window?: UsedWindow
  /** What went wrong underneath; logged, never shown to the caller. */
  readonly cause?: unknown
}

/** A refusal with a code of the table. Its message is shown to the caller, so it never holds a secret. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly path: string | undefined
  readonly retryAfterMs: number | undefined
  readonly window: UsedWindow | undefined

  constructor(code: ErrorCode, message: string, details: AppErrorDetails = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.code = code
    this.path = details.path
    this.retryAfterMs = details.retryAfterMs
    this.window = details.window
  }
}

/** Text of anything that was thrown, for logs and traces. */
export function describeError(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
