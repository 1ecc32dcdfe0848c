/** The events that a subscription can be for: names as in the event log and in the API, and what each one means. Holds no logic. */

export const WEBHOOK_EVENTS = {
  'contact.created': 'A contact was created.',
  'contact.updated': 'Fields of a contact changed.',
  'contact.deleted':
    'A contact was deleted, alone or with others. Erasing a person sends no event, and withdraws what was not yet delivered.',
  'contact.subscribed': 'A contact subscribed: to a list, or (`list_id` null) to mail in general again.',
  'contact.unsubscribed':
    'A contact unsubscribed: from a list, or (`list_id` null) from all that is not asked for.',
  'campaign.sent': 'A campaign started sending.',
  'campaign.completed': 'A campaign finished sending.',
  'email.sent': 'A mail was handed to a remote server for the first time.',
  'email.delivered': 'A remote server took a mail.',
  'email.opened': 'A mail was opened; scanners and prefetchers say so in `is_bot`.',
  'email.clicked': 'A link of a mail was followed; scanners say so in `is_bot`.',
  'email.bounced': 'A mail was refused for good, or came back.',
  'email.failed': 'A mail was given up without having been refused: it could not be built, or was withdrawn.',
  'email.complained': 'A recipient, or the provider for them, called a mail spam.',
  'flow.triggered': 'An automation began for a contact.',
  'flow.completed': 'An automation came to its end for a contact.',
  'form.submitted': 'Somebody filled in a form and, where that is asked for, confirmed it.',
  'conversion.created': 'A conversion was recorded.',
  'list.member_added': 'A contact was added to a list.',
  'list.member_removed': 'A contact was removed from a list.',
} as const

export type WebhookEvent = keyof typeof WEBHOOK_EVENTS

export const WEBHOOK_EVENT_NAMES = Object.keys(WEBHOOK_EVENTS) as readonly WebhookEvent[]

export function isWebhookEvent(name: string): name is WebhookEvent {
  return Object.hasOwn(WEBHOOK_EVENTS, name)
}
