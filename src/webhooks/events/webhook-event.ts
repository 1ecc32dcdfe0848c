/** Webhook events: their names, as in the event log and the API, and descriptions. */

export const WEBHOOK_EVENTS = {
  'contact.created': 'A contact was created.',
  'contact.updated': 'A contact’s fields changed.',
  'contact.deleted':
    'A contact was deleted, alone or in bulk. Erasing a person sends no event and cancels pending deliveries about them.',
  'contact.subscribed': 'A contact subscribed to a list, or (`list_id` null) resubscribed to all mail.',
  'contact.unsubscribed': 'A contact unsubscribed from a list, or (`list_id` null) from all marketing mail.',
  'campaign.sent': 'A campaign started sending.',
  'campaign.completed': 'A campaign finished sending.',
  'campaign.winner_required':
    'The A/B test of a campaign waits for a person to choose the winner (`POST /campaigns/:id/ab-test/winner`).',
  'campaign.waiting':
    'A campaign has waited for a minute; sent once for each reason of a wait. `waiting_for` as in `GET /campaigns/:id`.',
  'email.sent': 'An email was first handed to a remote server.',
  'email.delivered': 'The remote server accepted an email.',
  'email.opened': 'An email was opened; `is_bot` marks scanners and prefetchers.',
  'email.clicked': 'A link in an email was clicked; `is_bot` marks scanners.',
  'email.bounced': 'An email was permanently rejected or bounced later.',
  'email.failed': 'An email was not sent: it could not be built, or was cancelled.',
  'email.complained': 'A recipient or their provider reported an email as spam.',
  'flow.triggered': 'A contact entered an automation.',
  'flow.completed': 'A contact completed an automation.',
  'form.submitted': 'A form was submitted and, with double opt-in, confirmed.',
  'conversion.created': 'A conversion was recorded.',
  'list.member_added': 'A contact was added to a list.',
  'list.member_removed': 'A contact was removed from a list.',
} as const

export type WebhookEvent = keyof typeof WEBHOOK_EVENTS

export const WEBHOOK_EVENT_NAMES = Object.keys(WEBHOOK_EVENTS) as readonly WebhookEvent[]

export function isWebhookEvent(name: string): name is WebhookEvent {
  return Object.hasOwn(WEBHOOK_EVENTS, name)
}

/** The log holds one event per list join or leave; its stored body is rewritten when read for a subscription to the derived event. */
const DERIVED: Readonly<Partial<Record<WebhookEvent, WebhookEvent>>> = {
  'list.member_added': 'contact.subscribed',
  'list.member_removed': 'contact.unsubscribed',
}

/** The webhook events for which a logged event is delivered. */
export function deliveredEvents(kind: WebhookEvent): readonly WebhookEvent[] {
  const derived = DERIVED[kind]
  return derived ? [kind, derived] : [kind]
}

export interface StoredBody {
  readonly event: string
  /** JSON. */
  readonly body: string
}

/** @param subscribedTo the subscription's event; null if the subscription no longer exists */
export function bodyForSubscription(subscribedTo: string | null, stored: StoredBody): StoredBody {
  if (subscribedTo === null || subscribedTo === stored.event) return stored
  const { timestamp, data } = JSON.parse(stored.body) as { timestamp: string; data: Record<string, unknown> }
  const { contact_id, email, list_id, source } = data
  const derived = { event: subscribedTo, timestamp, data: { contact_id, email, list_id, source } }
  return { event: subscribedTo, body: JSON.stringify(derived) }
}
