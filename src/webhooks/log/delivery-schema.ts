import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { Id, Moment, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { openFields } from '../delivery/attempt.js'
import { DELIVERY_STATUSES } from '../delivery/delivery-store.js'
import type { LoggedAttempt, LoggedDelivery } from './delivery-log-store.js'

export const DeliveryStatusEnum = Type.Enum([...DELIVERY_STATUSES], {
  description: '`pending`: another attempt will be made; `failed`: no attempts are left.',
})

const AttemptSchema = Type.Object(
  {
    number: Type.Integer(),
    started_at: Moment(),
    duration_ms: Type.Integer(),
    status_code: Type.Integer({ description: 'HTTP status; 0 if there was no response.' }),
    error: TextOrNull({ description: 'Why there was no response.' }),
    response: TextOrNull({ description: 'Start of the response body, at most 1 KB.' }),
    user_agent: TextOrNull({
      description: 'User-Agent that was sent; null for attempts before it was recorded.',
    }),
  },
  { title: 'WebhookAttempt' },
)

export const DeliverySchema = Type.Object(
  {
    id: Id({ description: 'X-Service-Delivery-Id; the same for all attempts and replays.' }),
    webhook_id: Id(),
    event: Type.String(),
    status: DeliveryStatusEnum,
    request: Type.Object({
      headers: Type.Record(Type.String(), Type.String(), {
        description: 'As sent by the last attempt, without the signatures.',
      }),
      body: Type.String({ description: 'As sent: JSON.' }),
    }),
    attempts: Type.Array(AttemptSchema, { description: 'Oldest first.' }),
    next_attempt_at: MomentOrNull(),
    created_at: Moment(),
    finished_at: MomentOrNull(),
  },
  { title: 'WebhookDelivery' },
)

export function deliveryToApi(delivery: LoggedDelivery): Static<typeof DeliverySchema> {
  const { id, subscriptionId, event, body } = delivery
  return {
    id,
    webhook_id: subscriptionId,
    event,
    status: delivery.status,
    request: {
      headers: openFields(
        { event, deliveryId: id, subscriptionId },
        delivery.attempts.at(-1)?.userAgent ?? null,
      ),
      body,
    },
    attempts: delivery.attempts.map(attemptToApi),
    next_attempt_at: isoTimeOrNull(delivery.nextAttemptAt),
    created_at: isoTime(delivery.createdAt),
    finished_at: isoTimeOrNull(delivery.finishedAt),
  }
}

function attemptToApi(attempt: LoggedAttempt): Static<typeof AttemptSchema> {
  return {
    number: attempt.number,
    started_at: isoTime(attempt.startedAt),
    duration_ms: attempt.durationMs,
    status_code: attempt.statusCode,
    error: attempt.error,
    response: attempt.response,
    user_agent: attempt.userAgent,
  }
}
