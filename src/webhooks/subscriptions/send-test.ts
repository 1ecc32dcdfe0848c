/**
 * Sends a test delivery: one attempt with example values.
 *
 * Called by the route and the command line. It is not logged and does not affect the subscription's health.
 * Fails: SealError; a receiver's failure is a result.
 */
import { exampleOf } from '../../http/openapi/example.js'
import { attempt, isSuccess, type AttemptResult } from '../delivery/attempt.js'
import { DATA_SCHEMAS } from '../events/event-schemas.js'
import { bodyOf } from '../events/webhook-consumer.js'
import type { WebhookParts } from '../webhook-parts.js'
import { requireWorkspace, signingSecrets } from './subscriptions.js'
import type { Subscription } from './subscription-store.js'

/** @throws AppError workspace_not_found, SealError */
export async function sendTest(
  parts: WebhookParts,
  subscription: Subscription,
): Promise<AttemptResult & { readonly isSuccess: boolean }> {
  const { clock, newId, database, outgoingCalls } = parts
  const { id: subscriptionId, event, targetUrl } = subscription
  const workspace = await requireWorkspace(database.reader, subscription.workspaceId)
  const { http } = outgoingCalls(workspace.allowPrivateWebhooks)
  const now = clock.now()
  const data = exampleOf(DATA_SCHEMAS[event], false) as object
  const result = await attempt(
    { http, clock },
    {
      deliveryId: newId(),
      subscriptionId,
      event,
      targetUrl,
      body: bodyOf({ kind: event, occurredAt: now }, data),
      secrets: signingSecrets(parts, subscription, now),
    },
  )
  return { ...result, isSuccess: isSuccess(result) }
}
