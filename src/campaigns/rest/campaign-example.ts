import { EXAMPLE_ID } from '../../msa/rest/send-schema.js'
import type { ShownCampaign } from './campaign-schema.js'

const MOMENT = '2026-01-05T10:00:00.000Z'

export const CAMPAIGN_EXAMPLE = {
  name: 'January news',
  subject: 'News for {{firstName|you}}',
  template_id: EXAMPLE_ID,
  list_id: EXAMPLE_ID,
}

/** The optional settings of `manner`, none given. */
export const NO_MANNER = {
  from_email: null,
  from_name: null,
  reply_to: null,
  preheader: null,
  track_opens: null,
  track_clicks: null,
  rate_per_hour: null,
  send_window: null,
}

export const DRAFT_EXAMPLE: ShownCampaign = {
  id: EXAMPLE_ID,
  ...CAMPAIGN_EXAMPLE,
  segment_id: null,
  audience: null,
  resend_of: null,
  resend_to: null,
  ...NO_MANNER,
  send_time: 'at_once',
  ab_test: null,
  archive: false,
  archive_indexed: false,
  status: 'draft',
  waiting_for: null,
  error: null,
  is_sandbox: false,
  total_recipients: 0,
  excluded: { unsubscribed: 0, bounced: 0, suppressed: 0 },
  progress: { pending: 0, queued: 0, done: 0, skipped: 0, cancelled: 0 },
  stats: {
    sends: 0,
    delivered: 0,
    opens: 0,
    unique_opens: 0,
    clicks: 0,
    unique_clicks: 0,
    bounces: 0,
    complaints: 0,
    unsubscribes: 0,
    held: 0,
  },
  rates: {
    delivery_rate: 0,
    open_rate: 0,
    click_rate: 0,
    bounce_rate: 0,
    complaint_rate: 0,
    unsubscribe_rate: 0,
  },
  scheduled_at: null,
  started_at: null,
  completed_at: null,
  created_at: MOMENT,
  updated_at: MOMENT,
}

export const RESEND_EXAMPLE: ShownCampaign = {
  ...DRAFT_EXAMPLE,
  name: 'Resend of January news',
  list_id: null,
  resend_of: EXAMPLE_ID,
  resend_to: 'not_opened',
}

export const SENT_EXAMPLE: ShownCampaign = {
  ...DRAFT_EXAMPLE,
  status: 'completed',
  total_recipients: 100,
  excluded: { unsubscribed: 3, bounced: 1, suppressed: 1 },
  progress: { pending: 0, queued: 0, done: 99, skipped: 1, cancelled: 0 },
  stats: {
    sends: 99,
    delivered: 96,
    opens: 60,
    unique_opens: 48,
    clicks: 14,
    unique_clicks: 12,
    bounces: 3,
    complaints: 0,
    unsubscribes: 1,
    held: 0,
  },
  rates: {
    delivery_rate: 0.9697,
    open_rate: 0.5,
    click_rate: 0.125,
    bounce_rate: 0.0303,
    complaint_rate: 0,
    unsubscribe_rate: 0.0104,
  },
  started_at: MOMENT,
  completed_at: '2026-01-05T10:05:00.000Z',
}
