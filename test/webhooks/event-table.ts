/** Event -> the operations that cause it. `event-table.test.ts` checks that it is complete and that `events-served.test.ts` proves each event. */
import type { WebhookEvent } from '../../src/webhooks/events/webhook-event.js'

export interface EventRow {
  readonly event: WebhookEvent
  /** What causes it, as an operation of the API or in words. */
  readonly causedBy: readonly string[]
}

export const EVENT_TABLE: readonly EventRow[] = [
  {
    event: 'contact.created',
    causedBy: [
      'POST /contacts',
      'PUT /contacts',
      'POST /contacts/import',
      'a form',
      'POST /contacts/restore',
    ],
  },
  {
    event: 'contact.updated',
    causedBy: [
      'PATCH /contacts/:id',
      'PUT /contacts',
      'POST /contacts/import',
      'a form',
      'mail that bounces',
    ],
  },
  {
    event: 'contact.deleted',
    causedBy: ['DELETE /contacts/:id', 'POST /contacts/bulk-delete', 'POST /contacts/delete-all'],
  },
  {
    event: 'contact.subscribed',
    causedBy: [
      'PATCH /contacts/:id',
      'DELETE /suppressions/:email',
      'the preferences page',
      'all that causes list.member_added (of a list)',
    ],
  },
  {
    event: 'contact.unsubscribed',
    causedBy: [
      'PATCH /contacts/:id',
      'POST /suppressions',
      'an unsubscribe link',
      'one click (RFC 8058)',
      'the preferences page (of a list)',
    ],
  },
  {
    event: 'list.member_added',
    causedBy: [
      'POST /lists/:id/members',
      'POST /contacts with list_id',
      'POST /contacts/import',
      'a form',
      'automations',
    ],
  },
  {
    event: 'list.member_removed',
    causedBy: ['DELETE /lists/:id/members', 'the preferences page', 'automations'],
  },
  { event: 'form.submitted', causedBy: ['POST /f/:id', 'a confirmation of it'] },
  {
    event: 'email.sent',
    causedBy: ['POST /email/send', 'POST /email/batch', 'SMTP submission', 'campaigns', 'automations'],
  },
  { event: 'email.delivered', causedBy: ['a remote 2xx after DATA'] },
  { event: 'email.opened', causedBy: ['GET of the picture in a mail'] },
  { event: 'email.clicked', causedBy: ['GET of a link in a mail'] },
  {
    event: 'email.bounced',
    causedBy: ['a remote 5xx', 'the end of all retries', 'mail that comes back'],
  },
  {
    event: 'email.failed',
    causedBy: [
      'a mail that cannot be built',
      'content that is gone when the mail expires',
      'a mail deleted from the queue',
      'POST /campaigns/:id/cancel',
    ],
  },
  { event: 'email.complained', causedBy: ['a report of a feedback loop'] },
  { event: 'conversion.created', causedBy: ['POST /conversions'] },
  { event: 'campaign.sent', causedBy: ['POST /campaigns/:id/send/api'] },
  { event: 'campaign.completed', causedBy: ['the last mail of a campaign'] },
  {
    event: 'campaign.winner_required',
    causedBy: [
      'the last mail of a sample, if the test is decided by hand',
      'the time of the decision, if the lead may be chance and if_unclear is manual',
    ],
  },
  { event: 'campaign.waiting', causedBy: ['a minute without progress, for each reason'] },
  {
    event: 'flow.triggered',
    causedBy: ['POST /automations/:id/trigger', 'the trigger of an active automation'],
  },
  { event: 'flow.completed', causedBy: ['the last step of a run'] },
]
