/**
 * The objects shown in API examples: a small shop, its subscriber Ann, and her mail.
 *
 * `samples.ts` maps schemas to them. `undefined` omits an optional field.
 */

export const at = (time: string) => `2026-01-05T${time}.000Z`
const id = (last: number) => `0192f3a4-5b6c-7d8e-9f01-2345678900${String(last).padStart(2, '0')}`

export const IDS = {
  contact: id(1),
  message: id(2),
  list: id(3),
  tag: id(4),
  segment: id(5),
  template: id(6),
  campaign: id(7),
  automation: id(8),
  run: id(9),
  step: id(10),
  webhook: id(11),
  delivery: id(12),
  form: id(13),
  domain: id(14),
  batch: id(15),
  import: id(16),
  bounce: id(17),
  other: id(99),
}

export const ATTRIBUTES = { plan: 'pro', city: 'Berlin', orders: 3 }

export const contact = {
  id: IDS.contact,
  email: 'ann@example.com',
  first_name: 'Ann',
  last_name: 'Lee',
  attributes: ATTRIBUTES,
  subscribed: true,
  bounced: false,
  bounced_at: null,
  bounce_type: null,
  last_opened_at: at('10:05:00'),
  last_clicked_at: null,
  created_at: at('09:00:00'),
  updated_at: at('10:05:00'),
}
export const lists = [{ id: IDS.list, name: 'Newsletter' }]
export const tags = [{ id: IDS.tag, name: 'vip' }]

export const conditions = {
  match: 'all',
  rules: [
    { field: 'city', operator: 'equals', value: 'Berlin' },
    { field: 'orders', operator: 'gte', value: 3 },
  ],
}

export const moments = { created_at: at('09:00:00'), updated_at: at('09:00:00') }
export const list = {
  id: IDS.list,
  name: 'Newsletter',
  description: 'Monthly news',
  type: 'static',
  conditions: null,
  warnings: [],
  public: true,
  double_opt_in: false,
  member_count: 1_250,
  ...moments,
}
export const segment = {
  id: IDS.segment,
  name: 'Loyal customers in Berlin',
  conditions,
  warnings: [],
  ...moments,
}
export const attribute = {
  id: IDS.tag,
  name: 'revenue',
  label: 'Revenue',
  type: 'number',
  created_by: { type: 'api_key', id: IDS.list },
  ...moments,
}
export const tag = {
  id: IDS.tag,
  name: 'vip',
  color: '#3366cc',
  description: 'Spends most',
  contact_count: 42,
  ...moments,
}

export const history = {
  sent_at: at('10:00:00'),
  delivered_at: at('10:00:02'),
  opened_at: at('10:05:00'),
  clicked_at: null,
  bounced_at: null,
  complained_at: null,
}
export const status = {
  message_id: IDS.message,
  status: 'opened',
  to: 'ann@example.com',
  ...history,
  bounce_type: null,
  reason: undefined,
  scheduled_at: undefined,
  recipients: undefined,
  attempts: 1,
  next_attempt_at: null,
  last_reply: '250 2.0.0 Ok: queued as 4XyZ12',
}
export const mail = {
  subject: 'Your order',
  from: 'Shop <shop@example.com>',
  batch_id: null,
  campaign_id: null,
  contact_id: IDS.contact,
  template_id: null,
}
export const attempt = {
  message_id: IDS.message,
  attempt: 1,
  started_at: at('10:00:00'),
  finished_at: at('10:00:02'),
  outcome: 'delivered',
  summary: '250 2.0.0 Ok: queued as 4XyZ12',
  reply_code: 250,
  smtp_status: '2.0.0',
  cause: null,
  scope: null,
  subtype: null,
}
export const host = {
  host: 'mx.example.com',
  address: '192.0.2.25',
  port: 25,
  stage: 'delivered',
  reply: '250 2.0.0 Ok: queued as 4XyZ12',
  error: null,
  tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', verified: true, unverified_reason: null },
  tls_policy: 'opportunistic',
  tls_policy_source: null,
  mta_sts: null,
  duration_ms: 840,
  reused_connection: false,
}

export const campaign = {
  id: IDS.campaign,
  name: 'Spring sale',
  subject: '{{first_name|Friend}}, 20 % off this week',
  template_id: IDS.template,
  list_id: IDS.list,
  segment_id: null,
  from_email: 'shop@example.com',
  from_name: 'Shop',
  reply_to: null,
  track_opens: true,
  track_clicks: true,
  rate_per_hour: null,
  send_window: null,
  status: 'completed',
  error: null,
  total_recipients: 1_250,
  excluded: { unsubscribed: 12, bounced: 3, suppressed: 1 },
  progress: { pending: 0, queued: 0, done: 1_250, skipped: 0, cancelled: 0 },
  scheduled_at: null,
  started_at: at('10:00:00'),
  completed_at: at('10:09:00'),
  ...moments,
}
export const stats = {
  sends: 1_250,
  delivered: 1_240,
  opens: 610,
  unique_opens: 496,
  clicks: 150,
  unique_clicks: 124,
  bounces: 10,
  complaints: 1,
  unsubscribes: 4,
  held: 0,
}
export const rates = {
  delivery_rate: 0.992,
  open_rate: 0.4,
  click_rate: 0.1,
  bounce_rate: 0.008,
  complaint_rate: 0.0008,
  unsubscribe_rate: 0.0032,
}

export const trigger = {
  trigger_type: 'list_joined',
  trigger_config: { listId: IDS.list, frequency: 'once' },
}
export const automation = {
  id: IDS.automation,
  name: 'Welcome',
  status: 'active',
  ...trigger,
  stats: { total: 120, active: 8, completed: 111, failed: 1, paused: 0, cancelled: 0 },
  activated_at: at('09:00:00'),
  ...moments,
}
export const emailConfig = {
  templateId: IDS.template,
  subject: 'Welcome, {{first_name|friend}}',
  previewText: '',
}
export const step = { step_type: 'email', config: emailConfig, position: 0 }
export const run = {
  id: IDS.run,
  automation_id: IDS.automation,
  contact_id: IDS.contact,
  contact_email: 'ann@example.com',
  status: 'completed',
  current_step_id: null,
  trigger_type: 'list_joined',
  trigger_data: { list_id: IDS.list },
  exit_reason: 'completed',
  error: null,
  started_at: at('10:00:00'),
  next_run_at: null,
  completed_at: at('10:00:02'),
}

export const contactImport = {
  id: IDS.import,
  status: 'completed',
  file_name: 'contacts.csv',
  size: 48_120,
  charset: 'utf-8',
  preset: null,
  list_id: IDS.list,
  tags: ['imported'],
  progress: 1,
  rows: 1_000,
  created: 940,
  updated: 52,
  unchanged: 6,
  rejected: 2,
  error: null,
  created_at: at('10:00:00'),
  started_at: at('10:00:00'),
  completed_at: at('10:00:01'),
}

const imageUrl = (hash: string) => `https://mail.example.com/m/${hash}.jpg`
const [IMAGE_HASH, SMALL_IMAGE_HASH] = ['3b9c'.repeat(16), 'a41f'.repeat(16)]

export const mediaImage = {
  file_name: 'bicycle.jpg',
  alt_text: 'A red bicycle in front of a shop',
  media_type: 'image/jpeg',
  is_animated: false,
  width: 1_000,
  height: 500,
  size: 182_400,
  sha256: IMAGE_HASH,
  url: imageUrl(IMAGE_HASH),
  variants: [{ width: 600, height: 300, size: 61_200, url: imageUrl(SMALL_IMAGE_HASH) }],
  ...moments,
}

export const form = {
  id: IDS.form,
  name: 'Newsletter',
  title: 'Our newsletter',
  description: 'Once a month, no more.',
  list_ids: [IDS.list],
  redirect_url: null,
  double_opt_in: true,
  ...moments,
  url: `https://mail.example.com/f/${IDS.form}`,
}
export const formField = {
  name: 'plan',
  label: 'Plan',
  type: 'select',
  required: true,
  options: ['Basic', 'Pro'],
}

export const template = {
  id: IDS.template,
  name: 'Welcome',
  description: 'First mail to a new reader',
  version: 3,
  ...moments,
  html: '<p>Hello {{first_name|friend}}</p>',
  json_structure: null,
}
export const templateVersion = { ...template, version: 2, created_at: at('09:00:00') }

export const webhook = {
  id: IDS.webhook,
  event: 'email.delivered',
  targetUrl: 'https://shop.example.com/hooks',
  createdAt: at('09:00:00'),
  status: 'active',
  disabledAt: null,
  disabledReason: null,
  failingSince: null,
}
export const secret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'

export const bounce = {
  id: IDS.bounce,
  message_id: IDS.message,
  email: 'ann@example.com',
  contact_id: IDS.contact,
  campaign_id: null,
  type: 'permanent',
  subtype: 'no_such_mailbox',
  cause: 'recipient',
  scope: 'address',
  smtp_status: '5.1.1',
  diagnostic_code: 'smtp; 550 5.1.1 No such mailbox',
  isp_name: null,
  remote_mta: 'mx.example.com',
}
export const eventMail = { message_id: IDS.message, to: 'ann@example.com', ...mail, automation_id: null }
export const reader = {
  ip: '192.0.2.80',
  user_agent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X)',
  is_bot: false,
}

export const report = {
  kind: 'dmarc',
  domain: 'example.com',
  org_name: 'google.com',
  authenticated_as: 'google.com',
  report_id: '13190023454893294',
  begin_at: '2026-01-04T00:00:00.000Z',
  end_at: '2026-01-05T00:00:00.000Z',
  received_at: at('06:00:00'),
  summary: { messages: 120, passed: 119, failed: 1 },
}

export const day = {
  date: '2026-01-05',
  accepted: 1_300,
  sends: 1_298,
  campaign_sends: 1_250,
  api_sends: 48,
  delivered: 1_287,
  opens: 630,
  clicks: 161,
  bounces: 11,
  complaints: 1,
}
export const { date: today, ...total } = day

export const conversion = {
  id: IDS.other,
  contact_id: IDS.contact,
  value: 49.9,
  currency: 'EUR',
  metadata: { order: 'A-1001' },
  message_id: IDS.message,
  campaign_id: IDS.campaign,
}
export const view = {
  product_id: 'jug-1',
  product_name: 'Blue jug',
  product_url: 'https://shop.example.com/jug',
  image_url: 'https://shop.example.com/jug.png',
  price: 49.9,
  currency: 'EUR',
  category: 'Kitchen',
  metadata: { stock: 12 },
}

export const membership = {
  list_id: IDS.list,
  contact_id: IDS.contact,
  email: 'ann@example.com',
  source: 'api',
}
