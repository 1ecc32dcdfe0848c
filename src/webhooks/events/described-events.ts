/** The deliveries of each event as the API's description has them: header fields, body, an example. Pure. */
import Type, { type TSchema } from 'typebox'
import { Moment } from '../../http/answer/answer-fields.js'
import { exampleOf } from '../../http/openapi/example.js'
import type { OutgoingRequests } from '../../http/openapi/outgoing.js'
import { DATA_SCHEMAS } from './event-schemas.js'
import { WEBHOOK_EVENT_NAMES, WEBHOOK_EVENTS, type WebhookEvent } from './webhook-event.js'

const HEADERS = {
  'X-Service-Signature':
    '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<body>` with the secret; for 24 hours after a rotation a second v1.',
  'X-Service-Event': 'The event.',
  'X-Service-Delivery-Id': 'The same in all attempts: whoever has seen it has seen the event.',
  'X-Service-Webhook-Id': 'The webhook.',
  'webhook-id': 'As X-Service-Delivery-Id (Standard Webhooks).',
  'webhook-timestamp': 'Unix seconds (Standard Webhooks).',
  'webhook-signature': '`v1,<base64>`, after a rotation two of them (Standard Webhooks).',
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

/** Of the whole body of a delivery. */
export function bodySchema(event: WebhookEvent): TSchema {
  return Type.Object(
    {
      event: Type.Literal(event),
      timestamp: Moment({ description: 'When it happened.' }),
      data: DATA_SCHEMAS[event],
    },
    { title: `${titleOf(event)}Event` },
  )
}

/** `list.member_added` is `ListMemberAdded`. */
function titleOf(event: string): string {
  return event.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
