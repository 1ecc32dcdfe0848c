/**
 * SQL of webhook subscriptions.
 *
 * Secrets are stored and returned sealed (`accounts/secret-box.ts`); `subscriptions.ts` opens them.
 */
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { WebhookEvent } from '../events/webhook-event.js'

interface SubscriptionRow {
  id: string
  workspace_id: string
  is_sandbox: Flag
  event: string
  target_url: string
  secret: string
  former_secret: string | null
  former_until: number | null
  created_at: number
  failing_since: number | null
  disabled_at: number | null
  disabled_reason: string | null
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    webhook_subscriptions: SubscriptionRow
  }
}

/** `failing`: only failures for five days; `gone`: the receiver answered 410; `manual`: on request. */
export type DisabledReason = 'failing' | 'gone' | 'manual'

export interface Subscription {
  readonly id: string
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly event: WebhookEvent
  readonly targetUrl: string
  /** Sealed. */
  readonly secret: string
  /** The previous secret, sealed; deliveries are signed with both until `formerUntil`. */
  readonly formerSecret: string | null
  readonly formerUntil: number | null
  readonly createdAt: number
  /** First failure since the last success; null if the last attempt succeeded. */
  readonly failingSince: number | null
  readonly disabledAt: number | null
  readonly disabledReason: DisabledReason | null
}

export async function insertSubscription(db: Queries, subscription: Subscription): Promise<void> {
  await db
    .insertInto('webhook_subscriptions')
    .values({
      id: subscription.id,
      workspace_id: subscription.workspaceId,
      is_sandbox: flag(subscription.isSandbox),
      event: subscription.event,
      target_url: subscription.targetUrl,
      secret: subscription.secret,
      former_secret: subscription.formerSecret,
      former_until: subscription.formerUntil,
      created_at: subscription.createdAt,
      failing_since: subscription.failingSince,
      disabled_at: subscription.disabledAt,
      disabled_reason: subscription.disabledReason,
      deleted_at: null,
    })
    .execute()
}

export async function countSubscriptions(db: Queries, workspaceId: string): Promise<number> {
  const { total } = await ofWorkspace(db, workspaceId)
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

/** @returns undefined if it is unknown, deleted or another workspace's */
export async function findSubscription(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Subscription | undefined> {
  const row = await ofWorkspace(db, workspaceId).selectAll().where('id', '=', id).executeTakeFirst()
  return row && fromRow(row)
}

/** In any workspace; for the operator and for deliveries. */
export async function findAnySubscription(db: Queries, id: string): Promise<Subscription | undefined> {
  const row = await db
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && fromRow(row)
}

export interface SubscriptionFilter {
  readonly status?: 'active' | 'disabled'
  readonly event?: string
}

/** Newest first. */
export async function listSubscriptions(
  db: Queries,
  workspaceId: string,
  { status, event }: SubscriptionFilter,
  page: Page,
): Promise<Listing<Subscription>> {
  let matching = ofWorkspace(db, workspaceId)
  if (status !== undefined)
    matching = matching.where('disabled_at', status === 'active' ? 'is' : 'is not', null)
  if (event !== undefined) matching = matching.where('event', '=', event)
  return newestFirst(matching, page, fromRow, 'id')
}

/** Newest first, for operators. @param owners default: all workspaces and sandboxes */
export async function listAnySubscriptions(
  db: Queries,
  owners: readonly string[] | undefined,
  page: Page,
): Promise<Listing<Subscription>> {
  const matching = db
    .selectFrom('webhook_subscriptions')
    .where('deleted_at', 'is', null)
    .$if(owners !== undefined, query => query.where('workspace_id', 'in', owners ?? []))
  return newestFirst(matching, page, fromRow, 'id')
}

/** Active subscriptions, page by page. @param after last id of the previous page */
export async function listActiveSubscriptions(
  db: Queries,
  after: string,
  limit: number,
): Promise<Subscription[]> {
  const rows = await db
    .selectFrom('webhook_subscriptions')
    .selectAll()
    .where('id', '>', after)
    .where('disabled_at', 'is', null)
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(fromRow)
}

const selectSubscribers = statement((db, { workspaces }: { readonly workspaces: readonly string[] }) =>
  db
    .selectFrom('webhook_subscriptions')
    .select(['id', 'workspace_id', 'event'])
    .where('workspace_id', 'in', workspaces)
    .where('disabled_at', 'is', null)
    .where('deleted_at', 'is', null)
    .orderBy('workspace_id')
    .orderBy('id'),
)

export type Subscriber = Pick<Subscription, 'id' | 'workspaceId' | 'event'>

/** Active subscriptions of these workspaces. @param workspaceIds 1 to 256 */
export async function listSubscribers(db: Queries, workspaceIds: readonly string[]): Promise<Subscriber[]> {
  const { rows } = await selectSubscribers(db, { workspaces: workspaceIds })
  return rows.map(row => ({
    id: row.id,
    workspaceId: row.workspace_id,
    event: row.event as WebhookEvent,
  }))
}

export type SecretChange = Pick<Subscription, 'secret' | 'formerSecret' | 'formerUntil'>

export async function updateSecret(db: Queries, id: string, change: SecretChange): Promise<void> {
  await db
    .updateTable('webhook_subscriptions')
    .set({ secret: change.secret, former_secret: change.formerSecret, former_until: change.formerUntil })
    .where('id', '=', id)
    .execute()
}

export async function updateFailingSince(db: Queries, id: string, since: number | null): Promise<void> {
  await db.updateTable('webhook_subscriptions').set({ failing_since: since }).where('id', '=', id).execute()
}

/** @returns whether it was active */
export async function disableSubscription(
  db: Queries,
  id: string,
  reason: DisabledReason,
  at: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_subscriptions')
    .set({ disabled_at: at, disabled_reason: reason })
    .where('id', '=', id)
    .where('disabled_at', 'is', null)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function updateSubscription(
  db: Queries,
  { id, event, targetUrl, failingSince }: Subscription,
): Promise<void> {
  await db
    .updateTable('webhook_subscriptions')
    .set({ event, target_url: targetUrl, failing_since: failingSince })
    .where('id', '=', id)
    .execute()
}

export async function enableSubscription(db: Queries, id: string): Promise<void> {
  await db
    .updateTable('webhook_subscriptions')
    .set({ disabled_at: null, disabled_reason: null, failing_since: null })
    .where('id', '=', id)
    .execute()
}

/** Erases its secrets at once; `prune-deliveries.ts` deletes its deliveries later. */
export async function markSubscriptionDeleted(db: Queries, id: string, at: number): Promise<void> {
  await db
    .updateTable('webhook_subscriptions')
    .set({ deleted_at: at, secret: '', former_secret: null, former_until: null })
    .where('id', '=', id)
    .execute()
}

/** Disabled or deleted subscriptions, whose pending deliveries must be cleared. */
export async function listEnded(
  db: Queries,
  after: string,
  limit: number,
): Promise<{ readonly id: string; readonly isDeleted: boolean }[]> {
  const rows = await db
    .selectFrom('webhook_subscriptions')
    .select(['id', 'deleted_at'])
    .where('id', '>', after)
    .where(e => e.or([e('disabled_at', 'is not', null), e('deleted_at', 'is not', null)]))
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id, deleted_at }) => ({ id, isDeleted: deleted_at !== null }))
}

export async function removeSubscription(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('webhook_subscriptions').where('id', '=', id).execute()
}

/** Over all workspaces, those disabled since this time because of their receivers. */
export async function countDisabledSince(db: Queries, since: number): Promise<number> {
  const { total } = await db
    .selectFrom('webhook_subscriptions')
    .select(e => e.fn.countAll<number>().as('total'))
    .where('disabled_at', '>=', since)
    .where('disabled_reason', '<>', 'manual')
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return total
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db
    .selectFrom('webhook_subscriptions')
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
}

function fromRow(row: SubscriptionRow): Subscription {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    event: row.event as WebhookEvent,
    targetUrl: row.target_url,
    secret: row.secret,
    formerSecret: row.former_secret,
    formerUntil: row.former_until,
    createdAt: row.created_at,
    failingSince: row.failing_since,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason as DisabledReason | null,
  }
}
