/** Event -> the operations that cause it -> the test that shows it told. `event-table.test.ts` holds it to be complete and true. */
import type { WebhookEvent } from '../../src/webhooks/events/webhook-event.js'

export interface EventRow {
  readonly event: WebhookEvent
  /** What causes it, as an operation of the API or in words. */
  readonly causedBy: readonly string[]
  /** Below `test/`, without `.test.ts`, and the test's title. */
  readonly test: readonly [file: string, title: string]
}

const SERVED = 'webhooks/events-served'
const CONTACTS = 'changes of contacts are events'
const DELETED = 'deleted contacts are events, singly, in bulk and all together'
const LISTS = 'joining and leaving lists are events'
const FORMS = 'a form submission is an event with source form'
const MAIL = 'handing over and delivering mail are events'
const PLAYED = 'opens, clicks, bounces and complaints are events'
const CONVERSIONS = 'a conversion is an event'
const FLOWS = 'entering and completing an automation are events'
const CAMPAIGN = 'start and completion of a campaign are events'
const WINNER = 'an A/B test that waits for a person is an event'

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
    test: [SERVED, CONTACTS],
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
    test: [SERVED, CONTACTS],
  },
  {
    event: 'contact.deleted',
    causedBy: ['DELETE /contacts/:id', 'POST /contacts/bulk-delete', 'POST /contacts/delete-all'],
    test: [SERVED, DELETED],
  },
  {
    event: 'contact.subscribed',
    causedBy: [
      'PATCH /contacts/:id',
      'DELETE /suppressions/:email',
      'the preferences page',
      'all that causes list.member_added (of a list)',
    ],
    test: [SERVED, CONTACTS],
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
    test: [SERVED, CONTACTS],
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
    test: [SERVED, LISTS],
  },
  {
    event: 'list.member_removed',
    causedBy: ['DELETE /lists/:id/members', 'the preferences page', 'automations'],
    test: [SERVED, LISTS],
  },
  { event: 'form.submitted', causedBy: ['POST /f/:id', 'a confirmation of it'], test: [SERVED, FORMS] },
  {
    event: 'email.sent',
    causedBy: ['POST /email/send', 'POST /email/batch', 'SMTP submission', 'campaigns', 'automations'],
    test: [SERVED, MAIL],
  },
  { event: 'email.delivered', causedBy: ['a remote 2xx after DATA'], test: [SERVED, MAIL] },
  { event: 'email.opened', causedBy: ['GET of the picture in a mail'], test: [SERVED, PLAYED] },
  { event: 'email.clicked', causedBy: ['GET of a link in a mail'], test: [SERVED, PLAYED] },
  {
    event: 'email.bounced',
    causedBy: ['a remote 5xx', 'the end of all retries', 'mail that comes back'],
    test: [SERVED, PLAYED],
  },
  {
    event: 'email.failed',
    causedBy: [
      'a mail that cannot be built',
      'content that is gone when the mail expires',
      'a mail deleted from the queue',
      'POST /campaigns/:id/cancel',
    ],
    test: [SERVED, PLAYED],
  },
  { event: 'email.complained', causedBy: ['a report of a feedback loop'], test: [SERVED, PLAYED] },
  { event: 'conversion.created', causedBy: ['POST /conversions'], test: [SERVED, CONVERSIONS] },
  { event: 'campaign.sent', causedBy: ['POST /campaigns/:id/send/api'], test: [SERVED, CAMPAIGN] },
  { event: 'campaign.completed', causedBy: ['the last mail of a campaign'], test: [SERVED, CAMPAIGN] },
  {
    event: 'campaign.winner_required',
    causedBy: [
      'the last mail of a sample, if the test is decided by hand',
      'the time of the decision, if the lead may be chance and if_unclear is manual',
    ],
    test: [SERVED, WINNER],
  },
  {
    event: 'flow.triggered',
    causedBy: ['POST /automations/:id/trigger', 'the trigger of an active automation'],
    test: [SERVED, FLOWS],
  },
  { event: 'flow.completed', causedBy: ['the last step of a run'], test: [SERVED, FLOWS] },
]
