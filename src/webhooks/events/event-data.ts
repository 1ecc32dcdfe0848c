/**
 * Builds `data` of a webhook delivery from a logged event, in the API's names.
 *
 * Called by the consumer `webhooks` inside its transaction. Events are matched by the name of their kind, so this file does not depend on
 * the resources that declare them. Contact events are stored in the API's form already. Missing fields become null.
 */
import { ispName } from '../../deliverability/bounces/isp-name.js'
import { bounceIdOf } from '../../deliverability/bounces/bounce-store.js'
import type { LoggedEvent } from '../../events/store.js'
import { addressDomain } from '../../mail/address.js'
import type { MailFacts } from './mail-facts-store.js'
import type { WebhookEvent } from './webhook-event.js'

export type WebhookSourceEvent = Omit<LoggedEvent, 'payload' | 'toJSON'> & { readonly payload: object }

type Fields = Readonly<Record<string, unknown>>

/** @param mail facts about the event's message, if it has one */
type ToData = (event: WebhookSourceEvent, payload: Fields, mail: MailFacts | undefined) => object

const asTold: ToData = (_, payload) => payload

const DATA: Readonly<Record<WebhookEvent, ToData>> = {
  'contact.created': asTold,
  'contact.updated': asTold,
  'contact.deleted': asTold,
  'contact.subscribed': asTold,
  'contact.unsubscribed': asTold,
  'campaign.sent': (_, payload) => campaign(payload),
  'campaign.completed': (_, payload) => ({ ...campaign(payload), stats: payload['stats'] ?? {} }),
  'email.sent': aboutMail,
  'email.delivered': (event, payload, mail) => ({
    ...aboutMail(event, payload, mail),
    remote_mta: payload['remoteMta'] ?? null,
  }),
  'email.opened': (event, payload, mail) => ({
    ...aboutMail(event, payload, mail),
    ...visit(payload),
    inferred: payload['isInferred'] ?? false,
  }),
  'email.clicked': (event, payload, mail) => ({
    ...aboutMail(event, payload, mail),
    ...visit(payload),
    url: payload['url'] ?? null,
  }),
  'email.bounced': (event, payload, mail) => ({
    ...aboutMail(event, payload, mail),
    bounce_id: bounceIdOf({ messageId: event.messageId ?? '', occurredAt: event.occurredAt }),
    bounce_type: payload['bounceType'] ?? null,
    smtp_status: payload['smtpStatus'] ?? null,
    diagnostic_code: payload['diagnosticCode'] ?? null,
    isp_name: ispName(addressDomain(textOf(payload['to'])), textOf(payload['remoteMta'])),
  }),
  'email.failed': (event, payload, mail) => ({
    ...aboutMail(event, payload, mail),
    reason: payload['reason'] ?? null,
  }),
  'email.complained': (event, payload, mail) => ({
    ...aboutMail(event, payload, mail),
    feedback_type: payload['feedbackType'] ?? null,
  }),
  'flow.triggered': (_, payload) => flow(payload),
  'flow.completed': (_, payload) => flow(payload),
  'form.submitted': asTold,
  'conversion.created': asTold,
  'list.member_added': asTold,
  'list.member_removed': asTold,
}

export function eventData(
  event: WebhookSourceEvent & { readonly kind: WebhookEvent },
  mail: MailFacts | undefined,
): object {
  return DATA[event.kind](event, event.payload as Fields, mail)
}

function aboutMail(event: WebhookSourceEvent, payload: Fields, mail: MailFacts | undefined): object {
  return {
    message_id: event.messageId,
    to: payload['to'] ?? null,
    from: mail?.from ?? null,
    subject: mail?.subject ?? null,
    contact_id: payload['contactId'] ?? null,
    campaign_id: payload['campaignId'] ?? null,
    automation_id: payload['automationId'] ?? null,
    batch_id: payload['batchId'] ?? null,
    template_id: payload['templateId'] ?? null,
  }
}

function visit(payload: Fields): object {
  return {
    ip: payload['ip'] ?? null,
    user_agent: payload['userAgent'] ?? null,
    is_bot: payload['isBot'] ?? false,
  }
}

function campaign(payload: Fields): object {
  return {
    campaign_id: payload['campaignId'] ?? null,
    name: payload['name'] ?? null,
    total_recipients: payload['totalRecipients'] ?? 0,
  }
}

function flow(payload: Fields): object {
  return {
    automation_id: payload['automationId'] ?? null,
    run_id: payload['runId'] ?? null,
    contact_id: payload['contactId'] ?? null,
    trigger_type: payload['triggerType'] ?? null,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
