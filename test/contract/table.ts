/** The whole table "rule -> test", what the appliance does not serve yet, and the answers that no test can provoke. */
import { ANALYTICS_ROWS } from './rows/analytics-rows.js'
import { AUDIENCE_ROWS } from './rows/audience-rows.js'
import { AUTOMATION_ROWS } from './rows/automation-rows.js'
import { CAMPAIGN_ROWS } from './rows/campaign-rows.js'
import { CONTENT_ROWS } from './rows/content-rows.js'
import { DELIVERABILITY_ROWS } from './rows/deliverability-rows.js'
import { EMAIL_ROWS } from './rows/email-rows.js'
import { FRAME_ROWS } from './rows/frame-rows.js'
import { IDEMPOTENCY_ROWS } from './rows/idempotency-rows.js'
import { MESSAGE_ROWS } from './rows/message-rows.js'
import { RENDERING_ROWS } from './rows/rendering-rows.js'
import { WEBHOOK_ROWS } from './rows/webhook-rows.js'
import type { NotBuilt, Row } from './row.js'

export const ROWS: readonly Row[] = [
  ...FRAME_ROWS,
  ...IDEMPOTENCY_ROWS,
  ...EMAIL_ROWS,
  ...MESSAGE_ROWS,
  ...DELIVERABILITY_ROWS,
  ...ANALYTICS_ROWS,
  ...AUDIENCE_ROWS,
  ...CONTENT_ROWS,
  ...CAMPAIGN_ROWS,
  ...RENDERING_ROWS,
  ...AUTOMATION_ROWS,
  ...WEBHOOK_ROWS,
]

const ADDED = 'decisions: Added after the whole contract was tried from outside'

/** A route of one of these groups makes the check fail: the group then needs rows. */
export const NOT_BUILT: readonly NotBuilt[] = [
  {
    name: 'administration',
    paths: ['/api/admin/'],
    sections: [],
    places: [
      `${ADDED} > **Admin API** under /api/admin/v1 operator`,
      `${ADDED} > **Nothing has been released** Until`,
    ],
  },
]

/** Described answers that no test can bring about, each with the reason. */
export const UNPROVOKED: Readonly<Record<string, string>> = {
  'GET /api/v1/health: internal_error': 'a broken database is reported in the answer itself, with 503',
  'GET /api/v1/health/ready: internal_error': 'as with health',
}
