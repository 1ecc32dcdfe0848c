/** Rule -> test for webhooks and their events. */
import { inFile, type Row } from '../row.js'

const webhooks = inFile('webhooks/webhooks-served')
const events = inFile('webhooks/events-served')

const MADE = webhooks('a webhook is made, listed, told of its event alone, and deleted')
const REFUSED = webhooks('what cannot be a webhook is refused by name')
const SIGNED = webhooks('both signatures hold, the old secret for a day after a rotation as well')
const TESTED = webhooks("a test returns the receiver's response at once, or that it cannot be reached")
const RETRIED = webhooks(
  'what fails is tried again on schedule with the same id, eight times, and can then be replayed',
)
const REPLAYED = webhooks('all that failed since a moment is replayed, and nothing else')
const GONE = webhooks('410 disables a webhook at once, with a notice in the activity log and in /health')
const FAILING = webhooks(
  'five days of nothing but failures disable a webhook, and one success among them does not',
)
const PUT_OFF = webhooks('Retry-After is honoured')

const CONTACTS = events('changes of contacts are events')
const LISTS = events('joining and leaving lists are events')
const FORMS = events('a form submission is an event with source form')
const MAIL = events('handing over and delivering mail are events')
const PLAYED = events('opens, clicks, bounces and complaints are events')
const CONVERSIONS = events('a conversion is an event')
const FLOWS = events('entering and completing an automation are events')
const CAMPAIGN = events('start and completion of a campaign are events')

export const WEBHOOK_ROWS: readonly Row[] = [
  {
    rule: 'contact.subscribed and contact.unsubscribed accompany every list join or leave',
    from: [
      'decisions: Added after the whole contract was tried from outside > **List events** contactsubscribed/contactunsubscribed accompany every',
    ],
    tests: [
      events('joining and leaving lists are events'),
      events('a contact subscribes to the list that it is created in or imported into'),
    ],
  },
  {
    rule: 'a webhook is made with targetUrl and event, shown without its secret, deleted by the id in the query',
    from: [
      'What the service does > Webhook subscriptions for real-time event',
      'Webhooks > GET /webhooks/triggers',
      'Webhooks > POST /webhooks/triggers',
      'Webhooks > DELETE /webhooks/triggers?id=:webhookId',
    ],
    answers: ['DELETE /api/v1/webhooks/triggers: not_found'],
    tests: [MADE, webhooks('what no webhook has as its id is not found')],
  },
  {
    rule: 'a webhook is read and changed by its id, without its secret (additive)',
    from: ['Webhooks > GET /webhooks/triggers'],
    answers: ['GET /api/v1/webhooks/{id}: not_found', 'PATCH /api/v1/webhooks/{id}: not_found'],
    tests: [
      webhooks('a webhook can be read and changed, and its secret is never shown again'),
      webhooks('a webhook cannot be changed to what could not be created'),
      webhooks('what no webhook has as its id is not found'),
    ],
  },
  {
    rule: 'targetUrl and event are required; targets are http or https and public unless the operator lists their network',
    from: [
      'Webhooks > POST /webhooks/triggers',
      'decisions: Webhooks > Targets (subscriptions tests and automation',
    ],
    tests: [
      REFUSED,
      webhooks('private addresses that the operator does not list are not called'),
      webhooks('where the list is for permitted workspaces, only their settings open it'),
    ],
  },
  {
    rule: 'a workspace has a bounded number of webhooks',
    from: ['Webhooks > POST /webhooks/triggers'],
    answers: ['POST /api/v1/webhooks/triggers: limit_reached'],
    tests: [webhooks('a workspace can have 200 webhooks')],
  },
  {
    rule: 'a test answers success, status_code and response_time_ms; without a connection false and 0',
    from: [
      'Webhooks > POST /webhooks/:id/test',
      'Events > Test deliveries are sent with',
      'decisions: Webhooks > Attempts at 0 5 s',
    ],
    tests: [TESTED],
  },
  {
    rule: 'X-Service-Signature is t and HMAC-SHA256 over timestamp, dot, body; Standard Webhooks signatures as well; two after POST /webhooks/:id/rotate-secret',
    from: [
      'Authentication > 6',
      'Events > X-Service-Signature',
      'Events > The signature is HMAC-SHA256 with',
      'decisions: Webhooks > Creation returns secret once (whsec_',
    ],
    tests: [SIGNED, MADE],
  },
  {
    rule: 'a delivery is a JSON object of event, timestamp and data, with the headers of the contract',
    from: [
      'Events > Body JSON object with event',
      'Events > Headers',
      'Events > X-Service-Event',
      'Events > X-Service-Delivery-Id',
      'Events > X-Service-Webhook-Id',
    ],
    tests: [MADE],
  },
  {
    rule: 'eight attempts on the decided schedule with one id; 410 and five days of failures disable; POST /webhooks/:id/enable; Retry-After is honoured; replays',
    from: ['decisions: Webhooks > Attempts at 0 5 s'],
    answers: [
      'POST /api/v1/webhooks/{id}/replay: conflict',
      'POST /api/v1/webhooks/deliveries/{id}/replay: conflict',
    ],
    tests: [RETRIED, REPLAYED, GONE, FAILING, PUT_OFF],
  },
  {
    rule: 'contact.created, .updated (with changed), .subscribed and .unsubscribed (list_id or null, source)',
    from: [
      'Events > contact.created',
      'Events > contact.updated',
      'Events > contact.subscribed',
      'Events > contact.unsubscribed',
      'Events > The contents of data per',
      'decisions: Webhooks > Event data email* message_id to',
    ],
    tests: [CONTACTS, FORMS],
  },
  {
    rule: 'list.member_added and list.member_removed tell list, contact and source',
    from: ['Events > list.member_added', 'Events > list.member_removed'],
    tests: [LISTS],
  },
  {
    rule: 'form.submitted tells form, contact and fields',
    from: ['Events > form.submitted'],
    tests: [FORMS],
  },
  {
    rule: 'email.sent fires when a mail is first handed over; delivered, opened, clicked, bounced, complained follow',
    from: [
      'Events > email.sent',
      'Events > email.delivered',
      'Events > email.opened',
      'Events > email.clicked',
      'Events > email.bounced',
      'Events > email.complained',
      'decisions: Webhooks > emailsent fires when the message',
    ],
    tests: [MAIL, PLAYED],
  },
  {
    rule: 'conversion.created tells the record',
    from: ['Events > conversion.created'],
    tests: [CONVERSIONS],
  },
  {
    rule: 'campaign.sent and campaign.completed tell campaign, name and total_recipients',
    from: ['Events > campaign.sent', 'Events > campaign.completed'],
    tests: [CAMPAIGN],
  },
  {
    rule: 'campaign.winner_required (additive) tells that an A/B test waits for a person, once',
    from: ['Events > campaign.completed'],
    tests: [events('an A/B test that waits for a person is an event')],
  },
  {
    rule: 'flow.triggered and flow.completed tell automation, run, contact and trigger type',
    from: ['Events > flow.triggered', 'Events > flow.completed'],
    tests: [FLOWS],
  },
  {
    rule: 'webhook steps of automations are requests of their own, apart from subscriptions',
    from: ['Events > Automation webhook steps (see step'],
    tests: [events('a webhook step of an automation is a separate request')],
  },
]
