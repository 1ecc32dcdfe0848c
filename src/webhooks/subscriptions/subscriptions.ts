/**
 * Operations on webhook subscriptions: create, change, enable, rotate the secret, delete.
 *
 * Called by the routes and the command line. A secret is shown once, when it is created. Every change is recorded in the activity log.
 * Fails: AppError validation_error, limit_reached, not_found, workspace_not_found.
 */
import { findActingWorkspace, type ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import { findEgressFault } from '../../world/net/egress-policy.js'
import { newSecret, attempt, isSuccess, type AttemptResult } from '../delivery/attempt.js'
import { WEBHOOK_EVENT_NAMES, isWebhookEvent, type WebhookEvent } from '../events/webhook-event.js'
import type { WebhookParts } from '../webhook-parts.js'
import { formerPlace, secretPlace } from './secret-seal-store.js'
import {
  countSubscriptions,
  disableSubscription,
  enableSubscription,
  findSubscription,
  insertSubscription,
  markSubscriptionDeleted,
  updateSecret,
  updateSubscription,
  type Subscription,
} from './subscription-store.js'
import { exampleOf } from '../../http/openapi/example.js'
import { DATA_SCHEMAS } from '../events/event-schemas.js'
import { bodyOf } from '../events/webhook-consumer.js'

export const MAX_SUBSCRIPTIONS = 200
export const LONGEST_TARGET = 2_048

/** How long deliveries are also signed with the previous secret. */
export const ROTATION_MS = 24 * 60 * 60 * 1_000

export interface Wanted {
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly event: string
  readonly targetUrl: string
}

/** @returns the subscription and its plain-text secret */
export async function subscribe(
  parts: WebhookParts,
  tx: Tx,
  { workspaceId, isSandbox, event, targetUrl }: Wanted,
  actor: Actor,
): Promise<{ readonly subscription: Subscription; readonly secret: string }> {
  const { clock, random, newId, box } = parts
  const workspace = await requireWorkspace(tx.db, workspaceId)
  requireEvent(event)
  requireTarget(parts, targetUrl, workspace)
  if ((await countSubscriptions(tx.db, workspaceId)) >= MAX_SUBSCRIPTIONS)
    throw new AppError('limit_reached', `a workspace can have ${MAX_SUBSCRIPTIONS} webhooks`)
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
  await record(parts, tx, subscription, 'webhook.created', actor)
  return { subscription, secret }
}

function requireEvent(event: string): asserts event is WebhookEvent {
  if (!isWebhookEvent(event))
    throw new AppError('validation_error', `event must be one of ${WEBHOOK_EVENT_NAMES.join(', ')}`, {
      path: 'event',
    })
}

function requireTarget(
  { outgoingCalls }: WebhookParts,
  targetUrl: string,
  { allowPrivateWebhooks }: ActingWorkspace,
): void {
  const fault = findEgressFault(targetUrl, outgoingCalls(allowPrivateWebhooks).egress)
  if (fault !== undefined) throw new AppError('validation_error', `targetUrl ${fault}`, { path: 'targetUrl' })
}

export interface SubscriptionChanges {
  readonly event?: string
  readonly targetUrl?: string
  readonly status?: 'active' | 'disabled'
}

/** Pending deliveries go to the new URL, whose failure history starts empty. */
export async function changeSubscription(
  parts: WebhookParts,
  tx: Tx,
  before: Subscription,
  { event = before.event, targetUrl, status }: SubscriptionChanges,
  actor: Actor,
): Promise<Subscription> {
  requireEvent(event)
  if (targetUrl !== undefined)
    requireTarget(parts, targetUrl, await requireWorkspace(tx.db, before.workspaceId))
  const target = targetUrl === undefined ? before.targetUrl : shownTarget(targetUrl)
  const isMoved = target !== before.targetUrl
  let after: Subscription = {
    ...before,
    event,
    targetUrl: target,
    failingSince: isMoved ? null : before.failingSince,
  }
  if (isMoved || event !== before.event) {
    await updateSubscription(tx.db, after)
    await record(parts, tx, after, 'webhook.updated', actor)
  }
  if (status === 'active') after = await enable(parts, tx, after, actor)
  else if (status === 'disabled' && after.disabledAt === null) {
    const disabledAt = parts.clock.now()
    await disableSubscription(tx.db, after.id, 'manual', disabledAt)
    after = { ...after, disabledAt, disabledReason: 'manual' }
    await record(parts, tx, after, 'webhook.disabled', actor)
  }
  return after
}

/** As submitted, so that its owner recognises it; a non-ASCII URL in its encoded form. */
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
  await record(parts, tx, subscription, 'webhook.secret_rotated', actor)
  return { secret, formerUntil }
}

/** Secrets in use now, newest first. @throws SealError */
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
  await record(parts, tx, subscription, 'webhook.deleted', actor)
}

export async function enable(
  parts: WebhookParts,
  tx: Tx,
  subscription: Subscription,
  actor: Actor,
): Promise<Subscription> {
  if (subscription.disabledAt === null) return subscription
  await enableSubscription(tx.db, subscription.id)
  await record(parts, tx, subscription, 'webhook.enabled', actor)
  return { ...subscription, disabledAt: null, disabledReason: null, failingSince: null }
}

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

async function record(
  { clock }: WebhookParts,
  tx: Tx,
  { id, workspaceId, event, targetUrl }: Subscription,
  action: `webhook.${string}`,
  actor: Actor,
): Promise<void> {
  await recordActivity(tx, { workspaceId, actor }, clock.now(), {
    action,
    subject: targetUrl,
    details: { id, event },
  })
}

/** One attempt with example values; not logged, without effect on the subscription's health. @throws AppError workspace_not_found, SealError */
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
