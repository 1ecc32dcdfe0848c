/**
 * Answers clients whose request could not be read: not HTTP, headers too long, too slow, too many connections.
 *
 * Called by `app.ts` for `world/net/http-connections.ts`, which then closes the connection. Same format and headers as other errors.
 */
import { AppError } from '../../core/errors.js'
import type { HttpFault, RawAnswer } from '../../world/net/http-connections.js'
import { errorAnswer } from './error-body.js'

const RETRY_AFTER_MS = 5_000

const FAULTS: Readonly<Record<HttpFault, () => AppError>> = {
  malformed: () => new AppError('validation_error', 'this is not a valid HTTP request', { path: 'request' }),
  'headers-too-large': () =>
    new AppError('headers_too_large', 'the headers of a request may have 16 KB together'),
  'too-slow': () => new AppError('request_timeout', 'the request did not arrive in time; send it again'),
  'too-many-connections': () =>
    new AppError('unavailable', 'too many connections are open; use fewer, or try again in a few seconds', {
      retryAfterMs: RETRY_AFTER_MS,
    }),
}

/** @param headers common to all answers */
export function faultAnswer(fault: HttpFault, headers: Readonly<Record<string, string>>): RawAnswer {
  const { status, body, headers: own } = errorAnswer(FAULTS[fault]())
  const type = { 'Content-Type': 'application/json; charset=utf-8' }
  return { status, headers: { ...headers, ...own, ...type }, body: JSON.stringify(body) }
}
