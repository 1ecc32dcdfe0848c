/**
 * Derives `contact.subscribed` and `contact.unsubscribed` of lists from `list.member_*`.
 *
 * The event log holds one event per list join or leave, stored with the membership's body. It is rewritten when read for a subscription to
 * the derived event, so an import into a list writes each body once. Pure.
 */
import type { WebhookEvent } from './webhook-event.js'

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
