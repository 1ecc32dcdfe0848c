import { bodyForSubscription } from '../events/webhook-event.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { inLists } from '../../db/statement.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { AttemptResult } from '../delivery/attempt.js'
import type { DeliveryStatus } from '../delivery/delivery-store.js'

export interface LoggedAttempt extends Omit<AttemptResult, 'retryAfterMs'> {
  readonly number: number
}

export interface LoggedDelivery {
  readonly id: string
  readonly subscriptionId: string
  readonly event: string
  readonly body: string
  readonly status: DeliveryStatus
  readonly nextAttemptAt: number | null
  readonly createdAt: number
  readonly finishedAt: number | null
  /** Oldest first. */
  readonly attempts: readonly LoggedAttempt[]
}

export interface DeliveryFilter {
  readonly status?: DeliveryStatus
  /** Ms since epoch UTC; `since` included, `until` not. */
  readonly since?: number
  readonly until?: number
}

/** Newest first. */
export function listDeliveries(
  db: Queries,
  subscriptionId: string,
  filter: DeliveryFilter,
  page: Page,
): Promise<Listing<LoggedDelivery>> {
  return snapshot(db, db => listAtOneMoment(db, subscriptionId, filter, page))
}

async function listAtOneMoment(
  db: Queries,
  subscriptionId: string,
  filter: DeliveryFilter,
  page: Page,
): Promise<Listing<LoggedDelivery>> {
  const { after, isUncounted } = page
  const found = await complete(db)
    .where('subscription_id', '=', subscriptionId)
    .$call(query => filtered(query, filter))
    .$if(after !== undefined, query =>
      query.where('webhook_deliveries.id', '<', String(after?.position('text')[0])),
    )
    .orderBy('webhook_deliveries.id', 'desc')
    .limit(page.limit + 1)
    .offset(page.offset)
    .execute()
  const rows = found.slice(0, page.limit)
  const total =
    after?.total ?? (isUncounted ? found.length : await countDeliveries(db, subscriptionId, filter))
  const attempts = await attemptsOf(
    db,
    rows.map(({ id }) => id),
  )
  return {
    items: rows.map(row => fromRow(row, attempts.get(row.id) ?? [])),
    total,
    end: rows.slice(-1).map(({ id }) => id),
    hasMore: found.length > page.limit,
  }
}

async function countDeliveries(db: Queries, subscriptionId: string, filter: DeliveryFilter): Promise<number> {
  const { total } = await db
    .selectFrom('webhook_deliveries')
    .where('subscription_id', '=', subscriptionId)
    .$call(query => filtered(query, filter))
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

export function findDelivery(db: Queries, id: string): Promise<LoggedDelivery | undefined> {
  return snapshot(db, async db => {
    const row = await complete(db).where('webhook_deliveries.id', '=', id).executeTakeFirst()
    return row && fromRow(row, (await attemptsOf(db, [id])).get(id) ?? [])
  })
}

/** Makes a finished delivery pending again, with a fresh set of attempts. @returns false if it was still pending */
export async function replayDelivery(db: Queries, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await makePending(db, at)
    .where('id', '=', id)
    .where('next_attempt_at', 'is', null)
    .executeTakeFirst()
  if (numUpdatedRows > 0n) await keepBodies(db, [id], at)
  return numUpdatedRows > 0n
}

function makePending(db: Queries, at: number) {
  return db.updateTable('webhook_deliveries').set(e => ({
    status: 'pending' as const,
    attempts_before: e.ref('attempts'),
    next_attempt_at: at,
    finished_at: null,
  }))
}

async function keepBodies(db: Queries, deliveryIds: readonly string[], at: number): Promise<void> {
  await db
    .updateTable('webhook_payloads')
    .set({ created_at: at })
    .where('seq', 'in', e =>
      e.selectFrom('webhook_deliveries').select('payload').where('id', 'in', deliveryIds),
    )
    .execute()
}

/**
 * Replays the next failed deliveries of a subscription, oldest first.
 *
 * @param after id of the last delivery of the previous batch
 * @param since deliveries created at or after this time, ms since epoch UTC
 * @returns the ids of the deliveries replayed
 */
export async function replayFailed(
  db: Queries,
  { subscriptionId, since, after }: { subscriptionId: string; since: number; after: string },
  at: number,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('subscription_id', '=', subscriptionId)
    .where('id', '>', after)
    .where('status', '=', 'failed')
    .where('created_at', '>=', since)
    .orderBy('id')
    .limit(limit)
    .execute()
  const ids = rows.map(({ id }) => id)
  for (const list of inLists(ids)) {
    await keepBodies(db, list, at)
    await makePending(db, at).where('id', 'in', list).execute()
  }
  return ids
}

/**
 * Deletes the next old deliveries and their attempts. Pending and recently replayed ones are kept; later rows do not wait for them.
 *
 * @param after id of the last row examined; empty to start
 * @returns how many were deleted, and where to continue; undefined once all old ones were examined
 */
export async function deleteDeliveriesBefore(
  db: Queries,
  before: number,
  after: string,
  limit: number,
): Promise<{ readonly removed: number; readonly next: string | undefined }> {
  const rows = await db
    .selectFrom('webhook_deliveries as d')
    .leftJoin('webhook_payloads as p', 'p.seq', 'd.payload')
    .select(['d.id', 'd.next_attempt_at', 'd.created_at', 'p.created_at as kept_since'])
    .where('d.id', '>', after)
    .orderBy('d.id')
    .limit(limit)
    .execute()
  const done = rows.filter(row => row.next_attempt_at === null && (row.kept_since ?? row.created_at) < before)
  const ids = done.map(({ id }) => id)
  await deleteDeliveries(db, ids)
  const last = rows.at(-1)
  return { removed: ids.length, next: last && last.created_at < before ? last.id : undefined }
}

/**
 * Deletes the next old bodies that no pending delivery needs; `created_at` is the time of the last replay, if there was one.
 *
 * The scan ends at the body of the first recent delivery, so a long run of replayed bodies does not end it early.
 */
export async function deletePayloadsBefore(
  db: Queries,
  before: number,
  after: number,
  limit: number,
): Promise<{ readonly removed: number; readonly next: number | undefined }> {
  const young = await db
    .selectFrom('webhook_deliveries')
    .select('payload')
    .where('created_at', '>=', before)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  const rows = await db
    .selectFrom('webhook_payloads')
    .select(['seq', 'created_at'])
    .where('seq', '>', after)
    .$if(young !== undefined, query => query.where('seq', '<', young?.payload ?? 0))
    .orderBy('seq')
    .limit(limit)
    .execute()
  const old = rows.filter(row => row.created_at < before).map(({ seq }) => seq)
  const needed = await findWaitingFor(db, old)
  const seqs = old.filter(seq => !needed.has(seq))
  if (seqs.length > 0) await db.deleteFrom('webhook_payloads').where('seq', 'in', seqs).execute()
  return { removed: seqs.length, next: rows.at(-1)?.seq }
}

/** Bodies that pending deliveries need. Along an index of pending ones. */
async function findWaitingFor(db: Queries, payloads: readonly number[]): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  for (const list of inLists(payloads)) {
    const rows = await db
      .selectFrom('webhook_deliveries')
      .select('payload')
      .where('payload', 'in', list)
      .where('next_attempt_at', 'is not', null)
      .execute()
    for (const { payload } of rows) found.add(payload)
  }
  return found
}

/** Deletes a subscription's deliveries. @returns how many, at most `limit` */
export async function deleteDeliveriesOf(
  db: Queries,
  subscriptionId: string,
  limit: number,
): Promise<number> {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('subscription_id', '=', subscriptionId)
    .orderBy('id')
    .limit(limit)
    .execute()
  await deleteDeliveries(
    db,
    rows.map(({ id }) => id),
  )
  return rows.length
}

async function deleteDeliveries(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids)) {
    await db.deleteFrom('webhook_attempts').where('delivery_id', 'in', list).execute()
    await db.deleteFrom('webhook_deliveries').where('id', 'in', list).execute()
  }
}

function complete(db: Queries) {
  return db
    .selectFrom('webhook_deliveries')
    .innerJoin('webhook_payloads', 'webhook_payloads.seq', 'webhook_deliveries.payload')
    .leftJoin('webhook_subscriptions', 'webhook_subscriptions.id', 'webhook_deliveries.subscription_id')
    .select([
      'webhook_deliveries.id',
      'webhook_deliveries.subscription_id',
      'webhook_deliveries.status',
      'webhook_deliveries.next_attempt_at',
      'webhook_deliveries.created_at',
      'webhook_deliveries.finished_at',
      'webhook_payloads.event',
      'webhook_payloads.body',
      'webhook_subscriptions.event as subscribed_to',
    ])
}

/** Generic because a list query and its count differ in type but share columns. */
function filtered<Q>(query: Q, { status, since, until }: DeliveryFilter): Q {
  let narrower = query as unknown as { where(column: string, operator: string, value: unknown): never }
  if (status !== undefined) narrower = narrower.where('webhook_deliveries.status', '=', status)
  if (since !== undefined) narrower = narrower.where('webhook_deliveries.created_at', '>=', since)
  if (until !== undefined) narrower = narrower.where('webhook_deliveries.created_at', '<', until)
  return narrower as unknown as Q
}

async function attemptsOf(
  db: Queries,
  deliveryIds: readonly string[],
): Promise<ReadonlyMap<string, LoggedAttempt[]>> {
  const found = new Map<string, LoggedAttempt[]>()
  for (const ids of inLists(deliveryIds)) {
    const rows = await db
      .selectFrom('webhook_attempts')
      .selectAll()
      .where('delivery_id', 'in', ids)
      .orderBy('delivery_id')
      .orderBy('number')
      .execute()
    for (const row of rows) {
      const attempt: LoggedAttempt = {
        number: row.number,
        startedAt: row.started_at,
        durationMs: row.duration_ms,
        statusCode: row.status_code,
        error: row.error,
        response: row.response,
        userAgent: row.user_agent,
      }
      const known = found.get(row.delivery_id)
      if (known) known.push(attempt)
      else found.set(row.delivery_id, [attempt])
    }
  }
  return found
}

type CompleteRow = Awaited<ReturnType<ReturnType<typeof complete>['executeTakeFirstOrThrow']>>

function fromRow(row: CompleteRow, attempts: readonly LoggedAttempt[]): LoggedDelivery {
  return {
    id: row.id,
    subscriptionId: row.subscription_id,
    ...bodyForSubscription(row.subscribed_to, row),
    status: row.status,
    nextAttemptAt: row.next_attempt_at,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
    attempts,
  }
}
