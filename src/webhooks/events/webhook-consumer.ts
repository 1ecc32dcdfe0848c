/**
 * Event consumer `webhooks`: creates deliveries for subscribed events.
 *
 * An event without subscribers costs one lookup in memory. Otherwise its body and a row per subscription are written in the transaction
 * that moves the cursor; the delivery worker is notified after the commit. Starts at the newest event. An import has a body for each
 * contact.
 */
import { isImport, kindsOfImport, withEventsOfImports } from '../../audience/transfer/import-events.js'
import { isoTime } from '../../core/moments.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { inLists } from '../../db/statement.js'
import type { AnyConsumer } from '../../events/consumer.js'
import type { EventKind } from '../../events/event.js'
import type { LoggedEvent, StoredEvent } from '../../events/store.js'
import { insertDeliveries, insertPayloads, type NewDelivery } from '../delivery/delivery-store.js'
import type { SubscriptionRegister } from '../subscriptions/subscription-register.js'
import { listSubscribers } from '../subscriptions/subscription-store.js'
import { deliveredEvents, isWebhookEvent, WEBHOOK_EVENT_NAMES, type WebhookEvent } from './webhook-event.js'
import { findMailFacts, type MailFacts } from './mail-facts-store.js'
import { ispName } from '../../deliverability/bounces/isp-name.js'
import { bounceIdOf } from '../../deliverability/bounces/bounce-store.js'
import { addressDomain } from '../../mail/address.js'

export interface WebhookConsumerParts extends Pick<Services, 'clock' | 'newId'> {
  readonly register: Pick<SubscriptionRegister, 'isWanted' | 'refreshFor'>
  /** Deliveries for these subscriptions were committed. */
  readonly onDue: (subscriptionIds: readonly string[]) => void
}

/** Each may have many subscribers; this keeps a turn to some thousand rows. */
const EVENTS_PER_TURN = 25

type Stored = StoredEvent<EventKind>
type DeliverableEvent = WebhookSourceEvent & { readonly kind: WebhookEvent }

export function webhookConsumer(parts: WebhookConsumerParts): AnyConsumer {
  const { register } = parts
  return {
    name: 'webhooks',
    startsAt: 'newest',
    eventsPerTurn: EVENTS_PER_TURN,
    // By name: the resources of this installation decide which of these kinds exist.
    kinds: [...(WEBHOOK_EVENT_NAMES as readonly string[] as readonly EventKind[]), 'contacts.imported'],
    weigh: (event: Stored) => (isImport(event) ? event.payload.contacts.length : 1),
    refresh: (_, events) => register.refreshFor(events.map(({ workspaceId }) => workspaceId)),
    concerns: (event: Stored) =>
      (isImport(event) ? kindsOfImport(event.payload) : [event.kind])
        .filter(isWebhookEvent)
        .flatMap(deliveredEvents)
        .some(name => register.isWanted(event.workspaceId, name)),
    react: async (tx: Tx, events: readonly Stored[]) =>
      createDeliveries(parts, tx, await withEventsOfImports(tx.db, events)),
  }
}

async function createDeliveries(
  parts: WebhookConsumerParts,
  tx: Tx,
  events: readonly WebhookSourceEvent[],
): Promise<void> {
  const deliverable = events.filter((event): event is DeliverableEvent => isWebhookEvent(event.kind))
  const subscribers = await subscribersOf(tx.db, deliverable)
  const subscribersTo = ({ workspaceId, kind }: DeliverableEvent) =>
    deliveredEvents(kind).flatMap(event => subscribers.get(keyOf(workspaceId, event)) ?? [])
  const wanted = deliverable.filter(event => subscribersTo(event).length > 0)
  if (wanted.length === 0) return
  const mails = await findMailFacts(
    tx.db,
    wanted.flatMap(({ messageId, kind }) =>
      messageId !== null && kind.startsWith('email.') ? messageId : [],
    ),
  )
  const now = parts.clock.now()
  const payloads = await insertPayloads(
    tx.db,
    wanted.map(event => ({
      event: event.kind,
      body: bodyOf(event, eventData(event, mails.get(event.messageId ?? ''))),
      createdAt: now,
    })),
  )
  const deliveries = wanted.flatMap((event, at) =>
    subscribersTo(event).map((subscriptionId): NewDelivery => ({
      id: parts.newId(),
      subscriptionId,
      payload: payloads[at] ?? 0,
      createdAt: now,
    })),
  )
  await insertDeliveries(tx.db, deliveries)
  const due = [...new Set(deliveries.map(({ subscriptionId }) => subscriptionId))]
  tx.onCommit(() => parts.onDue(due))
}

/** JSON body of a delivery. */
export function bodyOf(
  { kind, occurredAt }: Pick<WebhookSourceEvent, 'kind' | 'occurredAt'>,
  data: object,
): string {
  return JSON.stringify({ event: kind, timestamp: isoTime(occurredAt), data })
}

/** @returns ids by workspace and event */
async function subscribersOf(
  db: Queries,
  events: readonly DeliverableEvent[],
): Promise<ReadonlyMap<string, string[]>> {
  const found = new Map<string, string[]>()
  const workspaces = [...new Set(events.map(({ workspaceId }) => workspaceId))]
  for (const list of inLists(workspaces))
    for (const { id, workspaceId, event } of await listSubscribers(db, list)) {
      const key = keyOf(workspaceId, event)
      const others = found.get(key)
      if (others) others.push(id)
      else found.set(key, [id])
    }
  return found
}

function keyOf(workspaceId: string, event: string): string {
  return `${workspaceId} ${event}`
}

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
  'campaign.winner_required': (_, payload) => campaign(payload),
  'campaign.waiting': (_, payload) => ({ ...campaign(payload), waiting_for: payload['waitingFor'] ?? {} }),
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
