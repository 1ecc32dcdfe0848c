/** Webhook requests in the OpenAPI description: header fields, body and example of each event. Pure. */
import Type, { type TSchema } from 'typebox'
import { Moment } from '../../http/answer/answer-fields.js'
import { exampleOf } from '../../http/openapi/example.js'
import type { OutgoingRequests } from '../../http/openapi/outgoing.js'
import { DATA_SCHEMAS } from './event-schemas.js'
import { WEBHOOK_EVENT_NAMES, WEBHOOK_EVENTS, type WebhookEvent } from './webhook-event.js'

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
