/**
 * What stands in `data` of each event, as the API's description shows it and as `docs/webhooks.md` is held to.
 *
 * Read by the description and by tests; deliveries are not checked against it on their way. Holds no logic.
 */
import Type, { type TSchema } from 'typebox'
import { ContactSchema } from '../../audience/contacts/contact-schema.js'
import { Address, Id, IdOrNull, Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import type { WebhookEvent } from './webhook-event.js'

const aboutMail = {
  message_id: Id(),
  to: Address(),
  from: orNull(Type.String(), {
    description: 'Address in From, e.g. shop@example.com; null where the mail is no longer kept.',
  }),
  subject: orNull(Type.String(), {
    description: 'As it was submitted, with its merge tags; null where the mail is no longer kept.',
  }),
  contact_id: IdOrNull({ description: 'Whom the address belonged to when the mail was accepted.' }),
  campaign_id: IdOrNull(),
  automation_id: IdOrNull(),
  batch_id: IdOrNull(),
  template_id: IdOrNull(),
}

const visit = {
  ip: Type.String({ description: 'Of whoever asked for the picture or the link.' }),
  user_agent: Type.String(),
  is_bot: Type.Boolean({ description: 'A known scanner or prefetcher.' }),
}

const subscription = {
  contact_id: Id(),
  email: Address(),
  list_id: IdOrNull({ description: 'Null: of everything.' }),
  source: Type.String({ description: 'api, one_click, preferences, form, import; more may come.' }),
}

const membership = {
  list_id: Id(),
  list_name: Type.String(),
  contact_id: Id(),
  email: Address(),
  source: Type.String({ description: 'api, preferences, form, import, automation; more may come.' }),
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
      changed: Type.Array(Type.String(), { description: 'Names of the fields that are other than before.' }),
    },
    { title: 'UpdatedContact' },
  ),
  'contact.deleted': Type.Object(
    {
      contact_id: Id(),
      email: Address(),
      is_restorable: Type.Boolean({
        description: 'Deleted with all contacts: POST /contacts/restore brings it back within 30 days.',
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
      stats: Type.Record(Type.String(), Type.Number(), { description: 'As the campaign itself shows them.' }),
    },
    { title: 'CompletedCampaign' },
  ),
  'email.sent': Type.Object(aboutMail, { title: 'SentEmail' }),
  'email.delivered': Type.Object({ ...aboutMail, remote_mta: Type.String() }, { title: 'DeliveredEmail' }),
  'email.opened': Type.Object(
    {
      ...aboutMail,
      ...visit,
      inferred: Type.Boolean({ description: 'True if concluded from a click, without a loaded pixel.' }),
    },
    { title: 'OpenedEmail' },
  ),
  'email.clicked': Type.Object({ ...aboutMail, ...visit, url: Type.String() }, { title: 'ClickedEmail' }),
  'email.bounced': Type.Object(
    {
      ...aboutMail,
      bounce_id: Id({ description: 'As in GET /bounces.' }),
      bounce_type: Type.String({ description: 'permanent, transient or undetermined.' }),
      smtp_status: Type.String({ description: 'RFC 3463, e.g. 5.1.1.' }),
      diagnostic_code: Type.String({ description: 'What the server said.' }),
      isp_name: TextOrNull({ description: 'Of the large providers.' }),
    },
    { title: 'BouncedEmail' },
  ),
  'email.failed': Type.Object(
    {
      ...aboutMail,
      reason: TextOrNull({
        description: 'Why, for people to read, e.g. `the subject is empty after merging`.',
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
      fields: Type.Record(Type.String(), Type.Unknown(), { description: 'By the names of the form.' }),
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
      message_id: IdOrNull({ description: 'The message that it is put down to.' }),
      campaign_id: IdOrNull(),
      is_sandbox: Type.Boolean(),
      created_at: Moment(),
    },
    { title: 'CreatedConversion' },
  ),
  'list.member_added': Type.Object(membership, { title: 'ListMembership' }),
  'list.member_removed': Type.Object(membership, { title: 'ListMembership' }),
}
