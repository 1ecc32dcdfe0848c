import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { given } from '../../core/given.js'
import { DONE, Done, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import type { DeliveryWorker } from '../delivery/delivery-worker.js'
import type { WebhookParts } from '../webhook-parts.js'
import {
  sendTest,
  changeSubscription,
  enable,
  MAX_SUBSCRIPTIONS,
  requireSubscription,
  requireWorkspace,
  rotateSecret,
  subscribe,
  unsubscribe,
} from './subscriptions.js'
import {
  CreatedSubscriptionSchema,
  EventName,
  NewSubscriptionBody,
  RotatedSecretSchema,
  SubscriptionChangesBody,
  SubscriptionSchema,
  subscriptionToApi,
} from './subscription-schema.js'
import { listSubscriptions } from './subscription-store.js'

export type SubscriptionRouteParts = WebhookParts & {
  readonly worker: Pick<DeliveryWorker, 'noteChanged' | 'noteRemoved'>
}

const Params = Type.Object({ id: Type.String() })
const CHAPTER = { chapter: 'Webhooks' }

export function subscriptionRoutes(parts: SubscriptionRouteParts): Route[] {
  return [...triggerRoutes(parts), ...singleRoutes(parts)]
}

function triggerRoutes(parts: SubscriptionRouteParts): Route[] {
  const { database, worker } = parts
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/webhooks/triggers',
      access: 'webhooks:read',
      operationId: 'listWebhooks',
      summary: 'List webhooks, newest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          status: Type.Optional(
            Type.Enum(['active', 'disabled', 'all'], { description: 'Default `active`.' }),
          ),
          event: Type.Optional(EventName),
        },
        { additionalProperties: false },
      ),
      item: SubscriptionSchema,
      async handle({ principal: { workspaceId }, query: { status = 'active', event } }, page) {
        const filter = { ...(status === 'all' ? {} : { status }), ...given({ event }) }
        const found = await listSubscriptions(database.slowReader, workspaceId, filter, page)
        return { ...found, items: found.items.map(subscriptionToApi) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/webhooks/triggers',
      access: 'webhooks:write',
      operationId: 'createWebhook',
      summary: 'Create a webhook.',
      description:
        'Posts each event of one type to a URL. The response contains the signing `secret`; it is shown only this once. A workspace can have ' +
        `${MAX_SUBSCRIPTIONS} webhooks. Private addresses are refused unless the operator allows them. A webhook created with a sandbox key ` +
        'receives sandbox events only.',
      body: NewSubscriptionBody,
      example: { targetUrl: 'https://hooks.example.com/postroad', event: 'email.delivered' },
      response: CreatedSubscriptionSchema,
      status: 201,
      answerHasSecret: true,
      location: ({ id }: Static<typeof CreatedSubscriptionSchema>) => `/webhooks/${id}`,
      errors: ['limit_reached'],
      async handle({ principal, body: { targetUrl, event } }) {
        const { workspaceId, isSandbox } = principal
        const { subscription, secret, isPermitted } = await database.write(async tx => {
          const made = await subscribe(
            parts,
            tx,
            { workspaceId, isSandbox, event, targetUrl },
            principal.actor,
          )
          const { allowPrivateWebhooks } = await requireWorkspace(tx.db, workspaceId)
          return { ...made, isPermitted: allowPrivateWebhooks }
        })
        worker.noteChanged({ ...subscription, isPermitted })
        return { ...subscriptionToApi(subscription), secret }
      },
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/webhooks/triggers',
      access: 'webhooks:write',
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook and its delivery log.',
      query: Type.Object(
        { id: Type.String({ minLength: 1, maxLength: 64 }) },
        { additionalProperties: false },
      ),
      response: Done,
      errors: ['not_found'],
      async handle({ principal, query }) {
        const { workspaceId } = principal
        const { id } = await database.write(async tx => {
          const subscription = await requireSubscription(tx.db, workspaceId, query.id)
          await unsubscribe(parts, tx, subscription, principal.actor)
          return subscription
        })
        worker.noteRemoved(id)
        return DONE
      },
    }),
  ]
}

export const TestResultSchema = Type.Object(
  {
    success: Type.Boolean({ description: 'True if the receiver answered 2xx.' }),
    status_code: Type.Integer({ description: 'HTTP status; 0 if there was no response.' }),
    response_time_ms: Type.Integer(),
    error: TextOrNull({ description: 'Why there was no response.' }),
    response: TextOrNull({ description: 'Start of the response body, at most 1 KB.' }),
  },
  { title: 'WebhookTest' },
)

function singleRoutes(parts: SubscriptionRouteParts): Route[] {
  const { database, worker } = parts
  return [
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/webhooks/:id',
      access: 'webhooks:read',
      operationId: 'getWebhook',
      summary: 'Get a webhook.',
      description: 'The secret is not included.',
      params: Params,
      response: SubscriptionSchema,
      errors: ['not_found'],
      handle: async ({ principal: { workspaceId }, params }) =>
        subscriptionToApi(await requireSubscription(database.reader, workspaceId, params.id)),
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/webhooks/:id',
      access: 'webhooks:write',
      operationId: 'updateWebhook',
      summary: 'Update, disable or enable a webhook.',
      description:
        'Omitted fields keep their value. Pending deliveries go to the new `targetUrl`; a new `event` applies to later events. With ' +
        '`status: "disabled"` events are no longer recorded for the webhook, and pending deliveries fail; replay them with ' +
        '`POST /webhooks/{id}/replay` once it is active again. The secret stays the same.',
      params: Params,
      body: SubscriptionChangesBody,
      example: { targetUrl: 'https://hooks.example.com/postroad-v2', status: 'active' },
      response: SubscriptionSchema,
      errors: ['not_found'],
      async handle({ principal, params, body }) {
        const { workspaceId } = principal
        const { subscription, isPermitted } = await database.write(async tx => {
          const before = await requireSubscription(tx.db, workspaceId, params.id)
          const { allowPrivateWebhooks } = await requireWorkspace(tx.db, workspaceId)
          return {
            subscription: await changeSubscription(parts, tx, before, given(body), principal.actor),
            isPermitted: allowPrivateWebhooks,
          }
        })
        if (subscription.disabledAt === null) worker.noteChanged({ ...subscription, isPermitted })
        else worker.noteRemoved(subscription.id)
        return subscriptionToApi(subscription)
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/webhooks/:id/test',
      access: 'webhooks:write',
      operationId: 'sendWebhookTest',
      summary: 'Send a test event.',
      description:
        'Posts a signed example event and waits up to 15 seconds for the response. Attempted once; not recorded in the delivery log.',
      params: Params,
      response: TestResultSchema,
      exampleAnswer: { success: true, status_code: 200, response_time_ms: 84, error: null, response: 'ok' },
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        const subscription = await requireSubscription(database.reader, workspaceId, params.id)
        const result = await sendTest(parts, subscription)
        return {
          success: result.isSuccess,
          status_code: result.statusCode,
          response_time_ms: result.durationMs,
          error: result.error,
          response: result.response,
        }
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/webhooks/:id/rotate-secret',
      access: 'webhooks:write',
      operationId: 'rotateWebhookSecret',
      summary: 'Rotate the signing secret.',
      description:
        'Deliveries are signed with both secrets for 24 hours, so that you can update the receiver. A secret from before the previous ' +
        'rotation stops working at once.',
      params: Params,
      response: RotatedSecretSchema,
      answerHasSecret: true,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const { workspaceId } = principal
        const { id, secret, formerUntil, changed } = await database.write(async tx => {
          const before = await requireSubscription(tx.db, workspaceId, params.id)
          const rotated = await rotateSecret(parts, tx, before, principal.actor)
          const { allowPrivateWebhooks: isPermitted } = await requireWorkspace(tx.db, workspaceId)
          const after = await requireSubscription(tx.db, workspaceId, before.id)
          return { ...rotated, id: before.id, changed: { ...after, isPermitted } }
        })
        if (changed.disabledAt === null) worker.noteChanged(changed)
        return { id, secret, previousSecretExpiresAt: isoTime(formerUntil) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/webhooks/:id/enable',
      access: 'webhooks:write',
      operationId: 'restoreWebhook',
      summary: 'Enable a disabled webhook.',
      description:
        'Events that happened while it was disabled are not delivered. Replay earlier failures with `POST /webhooks/{id}/replay`.',
      params: Params,
      response: SubscriptionSchema,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const { workspaceId } = principal
        const { subscription, isPermitted } = await database.write(async tx => {
          const before = await requireSubscription(tx.db, workspaceId, params.id)
          const { allowPrivateWebhooks } = await requireWorkspace(tx.db, workspaceId)
          return {
            subscription: await enable(parts, tx, before, principal.actor),
            isPermitted: allowPrivateWebhooks,
          }
        })
        worker.noteChanged({ ...subscription, isPermitted })
        return subscriptionToApi(subscription)
      },
    }),
  ]
}
