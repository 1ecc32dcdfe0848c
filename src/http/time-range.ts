/**
 * The query fields `since` and `until` of lists: one wording, one reader, for every list that has them.
 *
 * Used by routes: `timeRange` goes into the schema of the query, `readTimeRange` reads what came. Fails: AppError
 * validation_error with the field's name.
 */
import { given } from '../core/given.js'
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { readMoment, readRangeEnd } from '../core/read-moment.js'

/** A moment takes 40 characters at most; what is longer is refused before it is read. */
const text = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }))

export const sinceQuery = {
  since: text('ISO 8601, without a zone UTC; that moment included. A date alone is its first moment.'),
}

export const timeRangeQuery = {
  ...sinceQuery,
  until: text('ISO 8601, without a zone UTC; that moment not included. A date alone includes that day.'),
}

/** Ms since epoch UTC; `since` belongs to the range, `until` does not. */
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

/** What is told of a text that is no moment. */
export function noMoment(field: string, text: string): AppError {
  const shown = text.length > 40 ? `${text.slice(0, 40)}...` : text
  return new AppError(
    'validation_error',
    `${field}: '${shown}' is no date or time; write it as ISO 8601, e.g. 2026-01-05 or 2026-01-05T10:00:00Z`,
    { path: field },
  )
}
