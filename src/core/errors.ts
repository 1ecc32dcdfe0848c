/**
 * The table of all error codes that callers of Postroad can get.
 *
 * Domain code throws `AppError(code, message)` and is independent of transports; only `http/` uses the status column and only the SMTP
 * listeners use the reply column. The codes are part of the API contract: they may be added to, never renamed.
 */

interface ErrorRow {
  readonly status: number
  /** Corresponding SMTP reply code and enhanced status code (RFC 5321 §4.2, RFC 3463). */
  readonly smtp: readonly [code: number, enhanced: string]
}

export const ERRORS = {
  validation_error: { status: 400, smtp: [550, '5.6.0'] },
  unauthorized: { status: 401, smtp: [535, '5.7.8'] },
  forbidden: { status: 403, smtp: [550, '5.7.1'] },
  missing_from_email: { status: 400, smtp: [550, '5.1.7'] },
  // The session is valid, but the action requires a sign-in within the last minutes.
  sign_in_required: { status: 403, smtp: [550, '5.7.1'] },
  domain_invalid: { status: 403, smtp: [550, '5.7.1'] },
  template_not_found: { status: 404, smtp: [550, '5.6.0'] },
  contact_not_found: { status: 404, smtp: [550, '5.1.1'] },
  not_found: { status: 404, smtp: [550, '5.1.1'] },
  workspace_not_found: { status: 404, smtp: [535, '5.7.8'] },
  duplicate: { status: 409, smtp: [550, '5.6.0'] },
  conflict: { status: 409, smtp: [451, '4.3.0'] },
  idempotency_conflict: { status: 409, smtp: [550, '5.6.0'] },
  // If-Match did not match the current state.
  precondition_failed: { status: 412, smtp: [550, '5.6.0'] },
  limit_reached: { status: 403, smtp: [451, '4.7.1'] },
  rate_limited: { status: 429, smtp: [451, '4.7.1'] },
  invalid_schedule: { status: 400, smtp: [550, '5.6.0'] },
  schedule_failed: { status: 500, smtp: [451, '4.3.0'] },
  no_content: { status: 400, smtp: [550, '5.6.0'] },
  confirmation_required: { status: 400, smtp: [550, '5.6.0'] },
  // Temporarily unavailable: disk full, memory short, or database locked.
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
  readonly resetAt: number
}

export const VALUE_RULES = [
  'required',
  'unknown_field',
  'type',
  'enum',
  'max_length',
  'min_length',
  'max_items',
  'min_items',
  'maximum',
  'minimum',
  'pattern',
] as const

export interface BrokenRule {
  readonly name: (typeof VALUE_RULES)[number]
  /** Of lengths, counts and sizes. */
  readonly limit?: number
}

export interface AppErrorDetails {
  /** Dotted name of the offending field, e.g. `to.3` or `messages.0.subject`. */
  readonly path?: string
  /** For `validation_error`: what the value breaks, for programs that say it in their own words. */
  readonly rule?: BrokenRule
  /** For 429, 503 and similar: delay after which the same request may succeed, ms; absent if it never will. */
  readonly retryAfterMs?: number
  /** For `rate_limited`: the exhausted window, if it is not the one of requests. */
  readonly window?: UsedWindow
  /** Underlying error; logged, never shown to the caller. */
  readonly cause?: unknown
}

/** An error with a code from the table. Its message is shown to the caller and must not contain secrets. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly path: string | undefined
  readonly rule: BrokenRule | undefined
  readonly retryAfterMs: number | undefined
  readonly window: UsedWindow | undefined

  constructor(code: ErrorCode, message: string, details: AppErrorDetails = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.code = code
    this.path = details.path
    this.rule = details.rule
    this.retryAfterMs = details.retryAfterMs
    this.window = details.window
  }
}

/** Message of a thrown value, for logs and traces. */
export function describeError(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
