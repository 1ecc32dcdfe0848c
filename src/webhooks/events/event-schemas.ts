/** Schemas of `data` for each event: the source of the OpenAPI description and `docs/webhooks.md`. Deliveries are not validated against them. */
import Type, { type TSchema } from 'typebox'
import { ContactSchema } from '../../audience/contacts/contact-schema.js'
import { Address, Id, IdOrNull, Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { WaitingFor } from '../../http/answer/waiting-for.js'
import { type WebhookEvent, WEBHOOK_EVENT_NAMES, WEBHOOK_EVENTS } from './webhook-event.js'
import { exampleOf } from '../../http/openapi/example.js'
import type { OutgoingRequests } from '../../http/openapi/outgoing.js'

const aboutMail = {
  message_id: Id(),
  to: Address(),
  from: orNull(Type.String(), {
    description: 'Address in From, e.g. shop@example.com; null if the message was deleted.',
  }),
  subject: orNull(Type.String(), {
    description: 'As submitted, with merge tags unresolved; null if the message was deleted.',
  }),
  contact_id: IdOrNull({ description: 'Contact with this address when the email was accepted.' }),
  campaign_id: IdOrNull(),
  automation_id: IdOrNull(),
  batch_id: IdOrNull(),
  template_id: IdOrNull(),
}

const visit = {
  ip: Type.String({ description: 'IP address of the client.' }),
  user_agent: Type.String(),
  is_bot: Type.Boolean({ description: 'True for a known scanner or prefetcher.' }),
}

const subscription = {
  contact_id: Id(),
  email: Address(),
  list_id: IdOrNull({ description: 'Null: all marketing mail.' }),
  source: Type.String({ description: 'api, one_click, preferences, form or import; more may be added.' }),
}

const membership = {
  list_id: Id(),
  list_name: Type.String(),
  contact_id: Id(),
  email: Address(),
  source: Type.String({ description: 'api, preferences, form, import or automation; more may be added.' }),
}

const campaign = {
  campaign_id: Id(),
  name: Type.String(),
  total_recipients: Type.Integer(),
}

const flow = {
  automation_id: Id(),
  run_id: Id(),
  contact_id: Id(),
  trigger_type: Type.String(),
}

export const DATA_SCHEMAS: Readonly<Record<WebhookEvent, TSchema>> = {
  'contact.created': ContactSchema,
  'contact.updated': Type.Object(
    {
      ...ContactSchema.properties,
      changed: Type.Array(Type.String(), { description: 'Names of the changed fields.' }),
    },
    { title: 'UpdatedContact' },
  ),
  'contact.deleted': Type.Object(
    {
      contact_id: Id(),
      email: Address(),
      is_restorable: Type.Boolean({
        description:
          'True if all contacts were deleted at once: POST /contacts/restore restores them within 30 days.',
      }),
    },
    { title: 'DeletedContact' },
  ),
  'contact.subscribed': Type.Object(subscription, { title: 'ContactSubscription' }),
  'contact.unsubscribed': Type.Object(subscription, { title: 'ContactSubscription' }),
  'campaign.sent': Type.Object(campaign, { title: 'SentCampaign' }),
  'campaign.completed': Type.Object(
    {
      ...campaign,
      stats: Type.Record(Type.String(), Type.Number(), {
        description: 'Same fields as `stats` of the campaign.',
      }),
    },
    { title: 'CompletedCampaign' },
  ),
  'campaign.winner_required': Type.Object(campaign, { title: 'UndecidedCampaign' }),
  'campaign.waiting': Type.Object({ ...campaign, waiting_for: WaitingFor }, { title: 'WaitingCampaign' }),
  'email.sent': Type.Object(aboutMail, { title: 'SentEmail' }),
  'email.delivered': Type.Object({ ...aboutMail, remote_mta: Type.String() }, { title: 'DeliveredEmail' }),
  'email.opened': Type.Object(
    {
      ...aboutMail,
      ...visit,
      inferred: Type.Boolean({ description: 'True if inferred from a click, without a loaded pixel.' }),
    },
    { title: 'OpenedEmail' },
  ),
  'email.clicked': Type.Object({ ...aboutMail, ...visit, url: Type.String() }, { title: 'ClickedEmail' }),
  'email.bounced': Type.Object(
    {
      ...aboutMail,
      bounce_id: Id({ description: 'Id in GET /bounces.' }),
      bounce_type: Type.String({ description: 'permanent, transient or undetermined.' }),
      smtp_status: Type.String({ description: 'RFC 3463, e.g. 5.1.1.' }),
      diagnostic_code: Type.String({ description: 'Response text of the remote server.' }),
      isp_name: TextOrNull({ description: 'Large providers only, otherwise null.' }),
    },
    { title: 'BouncedEmail' },
  ),
  'email.failed': Type.Object(
    {
      ...aboutMail,
      reason: TextOrNull({
        description: 'Human-readable reason, e.g. `the subject is empty after merging`.',
      }),
    },
    { title: 'FailedEmail' },
  ),
  'email.complained': Type.Object(
    { ...aboutMail, feedback_type: Type.String({ description: 'RFC 5965 §7.3, e.g. abuse.' }) },
    { title: 'ComplainedEmail' },
  ),
  'flow.triggered': Type.Object(flow, { title: 'AutomationFlow' }),
  'flow.completed': Type.Object(flow, { title: 'AutomationFlow' }),
  'form.submitted': Type.Object(
    {
      form_id: Id(),
      contact_id: Id(),
      fields: Type.Record(Type.String(), Type.Unknown(), { description: 'Submitted values by field name.' }),
    },
    { title: 'FormSubmission' },
  ),
  'conversion.created': Type.Object(
    {
      id: Id(),
      contact_id: Id(),
      value: Type.Number({ description: 'Negative for a refund.' }),
      currency: Type.String({ description: 'ISO 4217.' }),
      metadata: Type.Record(Type.String(), Type.Unknown()),
      message_id: IdOrNull({ description: 'Message the conversion is attributed to.' }),
      campaign_id: IdOrNull(),
      is_sandbox: Type.Boolean(),
      created_at: Moment(),
    },
    { title: 'CreatedConversion' },
  ),
  'list.member_added': Type.Object(membership, { title: 'ListMembership' }),
  'list.member_removed': Type.Object(membership, { title: 'ListMembership' }),
}

const HEADERS = {
  'X-Service-Signature':
    '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<body>` with the secret; for 24 hours after a rotation, a second v1 with the previous one.',
  'X-Service-Event': 'Name of the event.',
  'X-Service-Delivery-Id': 'Id of the delivery, the same for all attempts; use it to ignore duplicates.',
  'X-Service-Webhook-Id': 'Id of the webhook.',
  'webhook-id': 'Same as X-Service-Delivery-Id (Standard Webhooks).',
  'webhook-timestamp': 'Time of the attempt, unix seconds (Standard Webhooks).',
  'webhook-signature': '`v1,<base64>`; two of them for 24 hours after a rotation (Standard Webhooks).',
}

export function describedEvents(): OutgoingRequests {
  return Object.fromEntries(
    WEBHOOK_EVENT_NAMES.map(event => [
      event,
      {
        chapter: 'Webhooks',
        summary: WEBHOOK_EVENTS[event],
        headers: HEADERS,
        body: bodySchema(event),
        example: { ...(exampleOf(bodySchema(event), false) as object), event },
      },
    ]),
  )
}

export function bodySchema(event: WebhookEvent): TSchema {
  return Type.Object(
    {
      event: Type.Literal(event),
      timestamp: Moment({ description: 'When the event happened.' }),
      data: DATA_SCHEMAS[event],
    },
    { title: `${titleOf(event)}Event` },
  )
}

function titleOf(event: string): string {
  return event.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
