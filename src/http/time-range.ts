/**
 * The query parameters `since` and `until` of lists.
 *
 * `timeRangeQuery` goes into a route's query schema, `readTimeRange` parses the values. Fails: AppError validation_error with the
 * parameter's name.
 */
import { given } from '../core/given.js'
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { readMoment, readRangeEnd } from '../core/moments.js'

/** A timestamp has at most 40 characters; longer text is refused without parsing. */
const text = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }))

export const sinceQuery = {
  since: text('Start, inclusive; ISO 8601, UTC if it has no zone. A date alone means its first moment.'),
}

export const timeRangeQuery = {
  ...sinceQuery,
  until: text('End, exclusive; ISO 8601, UTC if it has no zone. A date alone includes that day.'),
}

/** Ms since epoch UTC; `since` is inclusive, `until` exclusive. */
export interface TimeRange {
  readonly since?: number
  readonly until?: number
}

/** @throws AppError validation_error */
export function readTimeRange(query: { readonly since?: string; readonly until?: string }): TimeRange {
  const since = query.since === undefined ? undefined : readMoment(query.since)
  const until = query.until === undefined ? undefined : readRangeEnd(query.until)
  if (query.since !== undefined && since === undefined) throw noMoment('since', query.since)
  if (query.until !== undefined && until === undefined) throw noMoment('until', query.until)
  return { ...given({ since, until }) }
}

/** The error for an invalid timestamp. */
export function noMoment(field: string, text: string): AppError {
  const shown = text.length > 40 ? `${text.slice(0, 40)}...` : text
  return new AppError(
    'validation_error',
    `${field}: '${shown}' is not a valid date or time; use ISO 8601, e.g. 2026-01-05 or 2026-01-05T10:00:00Z`,
    { path: field },
  )
}
