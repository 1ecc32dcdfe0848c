/**
 * `contact.subscribed` and `contact.unsubscribed` of lists, derived from `list.member_*`.
 *
 * The event log has one event for each list join or leave. Its stored body is the membership's, and is rewritten when it is read for a
 * subscription to the derived event, so that an import into a list writes nothing twice. Pure.
 */
import type { WebhookEvent } from './webhook-event.js'

const DERIVED: Readonly<Partial<Record<WebhookEvent, WebhookEvent>>> = {
  'list.member_added': 'contact.subscribed',
  'list.member_removed': 'contact.unsubscribed',
}

/** The webhook events that an event of the log is delivered as. */
export function eventsToldBy(kind: WebhookEvent): readonly WebhookEvent[] {
  const derived = DERIVED[kind]
  return derived ? [kind, derived] : [kind]
}

export interface StoredBody {
  readonly event: string
  /** JSON. */
  readonly body: string
}

/** @param subscribedTo the subscription's event; null where the subscription is gone */
export function bodyToldTo(subscribedTo: string | null, stored: StoredBody): StoredBody {
  if (subscribedTo === null || subscribedTo === stored.event) return stored
  const { timestamp, data } = JSON.parse(stored.body) as { timestamp: string; data: Record<string, unknown> }
  const { contact_id, email, list_id, source } = data
  const told = { event: subscribedTo, timestamp, data: { contact_id, email, list_id, source } }
  return { event: subscribedTo, body: JSON.stringify(told) }
}
