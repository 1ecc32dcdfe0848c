/** The whole table "rule -> test", and the error answers that no test can provoke. */
import { ANALYTICS_ROWS } from './analytics-rows.js'
import { AUDIENCE_ROWS } from './audience-rows.js'
import { CONTENT_ROWS } from './content-rows.js'
import { DELIVERABILITY_ROWS } from './deliverability-rows.js'
import { EMAIL_ROWS } from './email-rows.js'
import { FRAME_ROWS } from './frame-rows.js'
import { IDEMPOTENCY_ROWS } from './idempotency-rows.js'
import { MESSAGE_ROWS } from './message-rows.js'
import { RENDERING_ROWS } from './rendering-rows.js'
import type { Row } from './row.js'

export const ROWS: readonly Row[] = [
  ...FRAME_ROWS,
  ...IDEMPOTENCY_ROWS,
  ...EMAIL_ROWS,
  ...MESSAGE_ROWS,
  ...DELIVERABILITY_ROWS,
  ...ANALYTICS_ROWS,
  ...AUDIENCE_ROWS,
  ...CONTENT_ROWS,
  ...RENDERING_ROWS,
]

/** Described, since nobody can rule them out, but nothing that a test can do brings them about: why not. */
export const UNPROVOKED: Readonly<Record<string, string>> = {
  'GET /api/v1/health: internal_error': 'what is wrong with the database is its answer, with 503',
}
