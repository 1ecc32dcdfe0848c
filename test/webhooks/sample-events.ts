/** An event of each kind as the log holds it, with its mail where it is about one: what `docs/webhooks.md` shows the payloads of. */
import { EMPTY_SUBJECT } from '../../src/content/rendering/mail-plan.js'
import type { WebhookSourceEvent } from '../../src/webhooks/events/webhook-consumer.js'
import type { WebhookEvent } from '../../src/webhooks/events/webhook-event.js'

const id = (last: number) => `019b8d99-6900-7000-8000-${String(last).padStart(12, '0')}`
const [CONTACT, LIST, MESSAGE, CAMPAIGN, AUTOMATION, RUN, FORM, CONVERSION] = [1, 2, 3, 4, 5, 6, 7, 8].map(id)
const MOMENT = '2026-01-05T10:00:00.000Z'

export const SAMPLE_MAIL = { from: 'shop@shop.example', subject: 'Your order has left' }

const contact = {
  id: CONTACT,
  email: 'ann@example.com',
  first_name: 'Ann',
  last_name: null,
  attributes: { plan: 'Pro' },
  subscribed: true,
  bounced: false,
  bounced_at: null,
  bounce_type: null,
  last_opened_at: null,
  last_clicked_at: null,
  is_sandbox: false,
  created_at: MOMENT,
  updated_at: MOMENT,
}
const about = { contact_id: CONTACT, email: 'ann@example.com' }
const membership = { list_id: LIST, list_name: 'Newsletter', ...about, source: 'api' }
const mail = { to: 'ann@example.com', contactId: CONTACT, campaignId: CAMPAIGN, isMarketing: true }
const visit = { ip: '192.0.2.7', userAgent: 'Mozilla/5.0', isBot: false }
const campaign = { campaignId: CAMPAIGN, name: 'Spring', totalRecipients: 1_200 }
const flow = { automationId: AUTOMATION, runId: RUN, contactId: CONTACT, triggerType: 'list_joined' }

const PAYLOADS: Readonly<Record<WebhookEvent, object>> = {
  'contact.created': contact,
  'contact.updated': { ...contact, changed: ['attributes'] },
  'contact.deleted': { ...about, is_restorable: false },
  'contact.subscribed': { ...about, list_id: LIST, source: 'form' },
  'contact.unsubscribed': { ...about, list_id: null, source: 'one_click' },
  'campaign.sent': campaign,
  'campaign.completed': {
    ...campaign,
    stats: {
      ...{ sends: 1_200, delivered: 1_187, opens: 0, unique_opens: 0, clicks: 0, unique_clicks: 0 },
      ...{ bounces: 13, complaints: 0, unsubscribes: 0 },
    },
  },
  'campaign.winner_required': campaign,
  'campaign.waiting': {
    ...campaign,
    waitingFor: {
      reason: 'hourly_limit',
      until: '2026-01-05T11:00:00.000Z',
      limit: 1_000,
      detail:
        'The workspace has used its hourly limit of 1,000 emails (hourly_limit); an operator can raise it.',
    },
  },
  'email.sent': mail,
  'email.delivered': { ...mail, remoteMta: 'mx.example.com' },
  'email.opened': { ...mail, ...visit },
  'email.clicked': { ...mail, ...visit, url: 'https://shop.example/orders/1042' },
  'email.bounced': {
    ...mail,
    ...{ bounceType: 'permanent', cause: 'recipient', scope: 'address', subtype: 'no_such_mailbox' },
    ...{ smtpStatus: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 no such user', remoteMta: 'mx.example.com' },
  },
  'email.failed': { ...mail, reason: EMPTY_SUBJECT },
  'email.complained': { ...mail, feedbackType: 'abuse' },
  'flow.triggered': flow,
  'flow.completed': flow,
  'form.submitted': { form_id: FORM, contact_id: CONTACT, fields: { plan: 'Pro' } },
  'conversion.created': {
    ...{ id: CONVERSION, contact_id: CONTACT, value: 19.9, currency: 'EUR', metadata: { order: 1042 } },
    ...{ message_id: MESSAGE, campaign_id: CAMPAIGN, is_sandbox: false, created_at: MOMENT },
  },
  'list.member_added': membership,
  'list.member_removed': membership,
}

export function sampleEvent(kind: WebhookEvent): WebhookSourceEvent & { readonly kind: WebhookEvent } {
  return {
    seq: 1,
    kind,
    workspaceId: id(9),
    messageId: kind.startsWith('email.') ? (MESSAGE ?? null) : null,
    isSandbox: false,
    occurredAt: Date.parse(MOMENT),
    payload: PAYLOADS[kind],
  }
}
