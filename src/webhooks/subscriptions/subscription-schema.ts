import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { Id, Moment, MomentOrNull, orNull } from '../../http/answer/answer-fields.js'
import { WEBHOOK_EVENT_NAMES } from '../events/webhook-event.js'
import { LONGEST_TARGET } from './subscriptions.js'
import type { Subscription } from './subscription-store.js'

export const EventName = Type.Enum([...WEBHOOK_EVENT_NAMES], {
  description: 'One of the events listed under `webhooks`.',
})

export const NewSubscriptionBody = Type.Object(
  {
    targetUrl: Type.String({
      minLength: 1,
      maxLength: LONGEST_TARGET,
      description: 'URL that events are posted to: http or https, without user name and password.',
      shownFormat: 'uri',
    }),
    event: EventName,
  },
  { additionalProperties: false, title: 'NewWebhook' },
)

export const SubscriptionChangesBody = Type.Object(
  {
    ...Type.Partial(NewSubscriptionBody).properties,
    status: Type.Optional(Type.Enum(['active', 'disabled'])),
  },
  { additionalProperties: false, title: 'WebhookChanges' },
)

const fields = {
  id: Id(),
  event: Type.String({ description: 'More may be added.' }),
  targetUrl: Type.String(),
  createdAt: Moment(),
  status: Type.Enum(['active', 'disabled']),
  disabledAt: MomentOrNull(),
  disabledReason: orNull(Type.Enum(['failing', 'gone', 'manual']), {
    description:
      '`failing`: every attempt failed for five days; `gone`: the receiver answered 410; `manual`: disabled on request.',
  }),
  failingSince: MomentOrNull({ description: 'First failure since the last success.' }),
  is_sandbox: Type.Boolean(),
}

export const SubscriptionSchema = Type.Object(fields, { title: 'Webhook' })

const Secret = Type.String({
  description: 'Signing secret, `whsec_` and base64. Shown only once.',
})

export const CreatedSubscriptionSchema = Type.Object(
  { ...fields, secret: Secret },
  { title: 'CreatedWebhook' },
)

export const RotatedSecretSchema = Type.Object(
  {
    id: Id(),
    secret: Secret,
    previousSecretExpiresAt: Moment({ description: 'Deliveries are signed with both secrets until then.' }),
  },
  { title: 'RotatedWebhookSecret' },
)

export function subscriptionToApi(subscription: Subscription): Static<typeof SubscriptionSchema> {
  return {
    id: subscription.id,
    event: subscription.event,
    targetUrl: subscription.targetUrl,
    createdAt: isoTime(subscription.createdAt),
    status: subscription.disabledAt === null ? 'active' : 'disabled',
    disabledAt: isoTimeOrNull(subscription.disabledAt),
    disabledReason: subscription.disabledReason,
    failingSince: isoTimeOrNull(subscription.failingSince),
    is_sandbox: subscription.isSandbox,
  }
}
