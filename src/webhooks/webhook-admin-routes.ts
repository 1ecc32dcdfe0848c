/** Admin routes of webhooks: found across workspaces. Everything else is done with the REST API in the workspace. */
import Type from 'typebox'
import { findActingWorkspace, findWorkspace, sandboxIdOf } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import { isUuid } from '../core/ids.js'
import type { Database, Queries } from '../db/database.js'
import { adminListRoute, adminRoute } from '../http/admin-route.js'
import { Id } from '../http/answer/answer-fields.js'
import { requirePermission, type OperatorPrincipal } from '../http/operator.js'
import { cursorQuery } from '../http/pagination.js'
import type { Route } from '../http/route.js'
import { requireDelivery } from './log/replay.js'
import { SubscriptionSchema, subscriptionToApi } from './subscriptions/subscription-schema.js'
import {
  findAnySubscription,
  listAnySubscriptions,
  type Subscription,
} from './subscriptions/subscription-store.js'

const Params = Type.Object({ id: Type.String({ maxLength: 64 }) })
const workspaceField = { workspace_id: Id({ description: 'Of a sandbox, its workspace.' }) }

export const OwnedWebhook = Type.Object(
  { ...SubscriptionSchema.properties, ...workspaceField },
  { title: 'OwnedWebhook' },
)

export function webhookAdminRoutes({ reader }: Database): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/webhooks',
      access: { permission: 'webhooks:read', scope: 'query' },
      operationId: 'listAllWebhooks',
      chapter: 'Webhooks',
      summary: 'List webhooks, newest first.',
      query: Type.Object(
        { ...cursorQuery, workspace_id: Type.Optional(Type.String({ maxLength: 64 })) },
        { additionalProperties: false },
      ),
      item: OwnedWebhook,
      errors: ['not_found'],
      async handle({ workspaceId }, page) {
        if (workspaceId !== undefined && !(await findWorkspace(reader, workspaceId)))
          throw new AppError('not_found', `no workspace ${workspaceId}`)
        const owners = workspaceId === undefined ? undefined : [workspaceId, sandboxIdOf(workspaceId)]
        const found = await listAnySubscriptions(reader, owners, page)
        const { items } = found
        const liveIds = new Map<string, string>()
        for (const one of items)
          if (!liveIds.has(one.workspaceId))
            liveIds.set(one.workspaceId, await liveIdOf(reader, one.workspaceId))
        return { ...found, items: items.map(one => toApi(one, liveIds.get(one.workspaceId) ?? '')) }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/webhooks/:id',
      access: { permission: 'webhooks:read', scope: 'record' },
      operationId: 'getAnyWebhook',
      chapter: 'Webhooks',
      summary: 'Get a webhook of any workspace.',
      params: Params,
      response: OwnedWebhook,
      async handle({ operator, params: { id } }) {
        const found = isUuid(id) ? await findAnySubscription(reader, id.toLowerCase()) : undefined
        if (!found) throw new AppError('not_found', `no webhook ${id}`)
        return toApi(found, await ownedBy(reader, operator, found))
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/webhook-deliveries/:id',
      access: { permission: 'webhooks:read', scope: 'record' },
      operationId: 'getAnyWebhookDelivery',
      chapter: 'Webhooks',
      summary: 'Find the webhook of a delivery.',
      params: Params,
      response: Type.Object({ id: Id(), webhook: OwnedWebhook }, { title: 'OwnedDelivery' }),
      async handle({ operator, params }) {
        const { delivery, subscription } = await requireDelivery(reader, params.id)
        return {
          id: delivery.id,
          webhook: toApi(subscription, await ownedBy(reader, operator, subscription)),
        }
      },
    }),
  ]
}

function toApi(subscription: Subscription, workspaceId: string) {
  return { ...subscriptionToApi(subscription), workspace_id: workspaceId }
}

async function liveIdOf(db: Queries, workspaceId: string): Promise<string> {
  return (await findActingWorkspace(db, workspaceId))?.liveId ?? workspaceId
}

/** @returns the workspace @throws AppError not_found, forbidden */
async function ownedBy(
  db: Queries,
  operator: OperatorPrincipal,
  { workspaceId }: Subscription,
): Promise<string> {
  const liveId = await liveIdOf(db, workspaceId)
  requirePermission(operator, 'webhooks:read', liveId)
  return liveId
}
