import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { readMoment } from '../../core/moments.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, Reply, route, type Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import type { DeliveryWorker } from '../delivery/delivery-worker.js'
import { requireSubscription } from '../subscriptions/subscriptions.js'
import type { WebhookParts } from '../webhook-parts.js'
import { listDeliveries } from './delivery-log-store.js'
import { DeliverySchema, DeliveryStatusEnum, deliveryToApi } from './delivery-schema.js'
import { replayAllFailed, replayOne, requireDelivery } from './replay.js'

export type DeliveryRouteParts = WebhookParts & { readonly worker: Pick<DeliveryWorker, 'noteDue'> }

const MAX_REPLAYED = 10_000

const Params = Type.Object({ id: Type.String() })
const CHAPTER = { chapter: 'Webhooks' }

export function deliveryRoutes(parts: DeliveryRouteParts): Route[] {
  const { database, clock, worker } = parts
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/webhooks/:id/deliveries',
      access: 'webhooks:read',
      operationId: 'listWebhookDeliveries',
      summary: 'List deliveries, newest first.',
      params: Params,
      query: Type.Object(
        { ...cursorQuery, status: Type.Optional(DeliveryStatusEnum), ...timeRangeQuery },
        { additionalProperties: false },
      ),
      item: DeliverySchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params, query }, page) {
        const { id } = await requireSubscription(database.reader, workspaceId, params.id)
        const filter = { ...given({ status: query.status }), ...readTimeRange(query) }
        const found = await listDeliveries(database.slowReader, id, filter, page)
        return { ...found, items: found.items.map(deliveryToApi) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/webhooks/deliveries/:id/replay',
      access: 'webhooks:write',
      operationId: 'replayWebhookDelivery',
      summary: 'Replay a delivery.',
      description: 'Keeps its X-Service-Delivery-Id and starts a new series of attempts.',
      params: Params,
      response: DeliverySchema,
      status: 202,
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId }, params }) {
        const delivery = await database.write(async tx => {
          const found = await requireDelivery(tx.db, params.id)
          if (found.subscription.workspaceId !== workspaceId)
            throw new AppError('not_found', 'no such delivery')
          await replayOne(tx.db, found, clock.now())
          return (await requireDelivery(tx.db, params.id)).delivery
        })
        worker.noteDue([delivery.subscriptionId])
        return new Reply(202, deliveryToApi(delivery))
      },
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/webhooks/:id/replay',
      access: 'webhooks:write',
      operationId: 'replayFailedWebhookDeliveries',
      summary: 'Replay failed deliveries.',
      description: `At most ${MAX_REPLAYED.toLocaleString('en')} per request. If \`has_more\` is true, repeat the request.`,
      params: Params,
      body: Type.Object(
        {
          since: Type.String({
            minLength: 1,
            maxLength: 64,
            shownFormat: 'date-time',
            description: 'Replays deliveries created at or after this time; ISO 8601.',
          }),
        },
        { additionalProperties: false, title: 'ReplayedSince' },
      ),
      response: Type.Object(
        { replayed: Type.Integer(), has_more: Type.Boolean() },
        { title: 'ReplayedDeliveries' },
      ),
      status: 202,
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId }, params, body }) {
        const subscription = await requireSubscription(database.reader, workspaceId, params.id)
        const since = readMoment(body.since)
        if (since === undefined)
          throw new AppError('validation_error', 'since is not a date or time in ISO 8601', { path: 'since' })
        const now = clock.now()
        const replayed = await replayAllFailed(database, subscription, { since, most: MAX_REPLAYED, now })
        worker.noteDue([subscription.id])
        return new Reply(202, { replayed, has_more: replayed === MAX_REPLAYED })
      },
    }),
  ]
}
