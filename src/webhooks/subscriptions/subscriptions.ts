/**
 * What can be done with a subscription: make it, turn its secret over, open its secrets, switch it on again, delete it.
 *
 * Called by the routes and the command line. A secret is shown when it is made and never again. Every change stands in the activity
 * log. Fails with AppError: validation_error, limit_reached, not_found, workspace_not_found.
 */
import { findActingWorkspace, type ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { reachableTargetFault } from '../../world/net/http-target.js'
import { newSecret } from '../delivery/signature.js'
import { WEBHOOK_EVENT_NAMES, isWebhookEvent } from '../events/webhook-event.js'
import type { WebhookParts } from '../webhook-parts.js'
import { formerPlace, secretPlace } from './secret-places.js'
import {
  countSubscriptions,
  enableSubscription,
  findSubscription,
  insertSubscription,
  markSubscriptionDeleted,
  updateSecret,
  type Subscription,
} from './subscription-store.js'

/** Of one workspace, disabled ones included. */
export const MOST_SUBSCRIPTIONS = 200
export const LONGEST_TARGET = 2_048

/** How long deliveries are signed with the former secret as well. */
export const ROTATION_MS = 24 * 60 * 60 * 1_000

export interface Wanted {
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly event: string
  readonly targetUrl: string
}

/** @returns it, with its secret as the receiver needs it */
export async function subscribe(
  parts: WebhookParts,
  tx: Tx,
  { workspaceId, isSandbox, event, targetUrl }: Wanted,
  actor: Actor,
): Promise<{ readonly subscription: Subscription; readonly secret: string }> {
  const { clock, random, newId, box, outgoingCalls } = parts
  if (!isWebhookEvent(event))
    throw new AppError('validation_error', `event must be one of ${WEBHOOK_EVENT_NAMES.join(', ')}`, {
      path: 'event',
    })
  const workspace = await requireWorkspace(tx.db, workspaceId)
  const fault = reachableTargetFault(targetUrl, outgoingCalls(workspace.allowPrivateWebhooks).reach)
  if (fault !== undefined) throw new AppError('validation_error', `targetUrl ${fault}`, { path: 'targetUrl' })
  if ((await countSubscriptions(tx.db, workspaceId)) >= MOST_SUBSCRIPTIONS)
    throw new AppError('limit_reached', `a workspace can have ${MOST_SUBSCRIPTIONS} webhooks`)
  const id = newId()
  const secret = newSecret(random)
  const subscription: Subscription = {
    id,
    workspaceId,
    isSandbox,
    event,
    targetUrl: shownTarget(targetUrl),
    secret: box.seal(secret, secretPlace(id)),
    formerSecret: null,
    formerUntil: null,
    createdAt: clock.now(),
    failingSince: null,
    disabledAt: null,
    disabledReason: null,
  }
  await insertSubscription(tx.db, subscription)
  await note(parts, tx, subscription, 'webhook.created', actor)
  return { subscription, secret }
}

/** As it was given, so that its owner knows it again; what is not plain ASCII as it is called. */
function shownTarget(targetUrl: string): string {
  return /^[\x21-\x7e]+$/.test(targetUrl) ? targetUrl : new URL(targetUrl).href
}

/** @returns the new secret; deliveries are signed with both for a day */
export async function rotateSecret(
  parts: WebhookParts,
  tx: Tx,
  subscription: Subscription,
  actor: Actor,
): Promise<{ readonly secret: string; readonly formerUntil: number }> {
  const { clock, random, box } = parts
  const { id } = subscription
  const secret = newSecret(random)
  const formerUntil = clock.now() + ROTATION_MS
  const former = box.open(subscription.secret, secretPlace(id))
  await updateSecret(tx.db, id, {
    secret: box.seal(secret, secretPlace(id)),
    formerSecret: box.seal(former, formerPlace(id)),
    formerUntil,
  })
  await note(parts, tx, subscription, 'webhook.secret_rotated', actor)
  return { secret, formerUntil }
}

/** Secrets that sign at this moment, the newest first. @throws SealError */
export function signingSecrets(
  { box }: Pick<WebhookParts, 'box'>,
  { id, secret, formerSecret, formerUntil }: Subscription,
  now: number,
): string[] {
  const secrets = [box.open(secret, secretPlace(id))]
  if (formerSecret !== null && formerUntil !== null && now < formerUntil)
    secrets.push(box.open(formerSecret, formerPlace(id)))
  return secrets
}

export async function unsubscribe(
  parts: WebhookParts,
  tx: Tx,
  subscription: Subscription,
  actor: Actor,
): Promise<void> {
  await markSubscriptionDeleted(tx.db, subscription.id, parts.clock.now())
  await note(parts, tx, subscription, 'webhook.deleted', actor)
}

export async function enable(
  parts: WebhookParts,
  tx: Tx,
  subscription: Subscription,
  actor: Actor,
): Promise<Subscription> {
  if (subscription.disabledAt === null) return subscription
  await enableSubscription(tx.db, subscription.id)
  await note(parts, tx, subscription, 'webhook.enabled', actor)
  return { ...subscription, disabledAt: null, disabledReason: null, failingSince: null }
}

/** @throws AppError not_found */
export async function requireSubscription(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Subscription> {
  const found = isUuid(id) ? await findSubscription(db, workspaceId, id.toLowerCase()) : undefined
  if (!found) throw new AppError('not_found', 'no such webhook')
  return found
}

/** @throws AppError workspace_not_found */
export async function requireWorkspace(db: Queries, workspaceId: string): Promise<ActingWorkspace> {
  const workspace = await findActingWorkspace(db, workspaceId)
  if (!workspace) throw new AppError('workspace_not_found', "the key's workspace no longer exists")
  return workspace
}

async function note(
  { clock }: WebhookParts,
  tx: Tx,
  { id, workspaceId, event, targetUrl }: Subscription,
  action: `webhook.${string}`,
  actor: Actor,
): Promise<void> {
  await recordActivity(tx, {
    workspaceId,
    actor,
    action,
    subject: targetUrl,
    details: { id, event },
    createdAt: clock.now(),
  })
}
