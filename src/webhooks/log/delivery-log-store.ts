/** SQL of the log of deliveries: what was told to whom, each attempt of it, its replay, and its end by age. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
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
export async function listDeliveries(
  db: Queries,
  subscriptionId: string,
  filter: DeliveryFilter,
  page: Page,
): Promise<Listing<LoggedDelivery>> {
  const rows = await complete(db)
    .where('subscription_id', '=', subscriptionId)
    .$call(query => narrowed(query, filter))
    .orderBy('webhook_deliveries.id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  const { total } = await db
    .selectFrom('webhook_deliveries')
    .where('subscription_id', '=', subscriptionId)
    .$call(query => narrowed(query, filter))
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  const attempts = await attemptsOf(
    db,
    rows.map(({ id }) => id),
  )
  return { items: rows.map(row => fromRow(row, attempts.get(row.id) ?? [])), total }
}

export async function findDelivery(db: Queries, id: string): Promise<LoggedDelivery | undefined> {
  const row = await complete(db).where('webhook_deliveries.id', '=', id).executeTakeFirst()
  return row && fromRow(row, (await attemptsOf(db, [id])).get(id) ?? [])
}

/** Once more from the first attempt on, as the same delivery. @returns whether it was finished until then */
export async function replayDelivery(db: Queries, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_deliveries')
    .set(e => ({
      status: 'pending' as const,
      attempts_before: e.ref('attempts'),
      next_attempt_at: at,
      finished_at: null,
    }))
    .where('id', '=', id)
    .where('next_attempt_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * The same for failed ones of a subscription, oldest first, some at a time.
 *
 * @param after id of the last one that was looked at @param since those that were made from this moment on
 * @returns the ids of those that are tried again
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
  for (const list of inLists(ids))
    await db
      .updateTable('webhook_deliveries')
      .set(e => ({
        status: 'pending' as const,
        attempts_before: e.ref('attempts'),
        next_attempt_at: at,
        finished_at: null,
      }))
      .where('id', 'in', list)
      .execute()
  return ids
}

/** With their attempts, whatever became of them. @returns how many, at most `limit` */
export async function deleteDeliveriesBefore(db: Queries, before: number, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select(['id', 'created_at'])
    .orderBy('id')
    .limit(limit)
    .execute()
  const ids = rows.filter(row => row.created_at < before).map(({ id }) => id)
  await deleteDeliveries(db, ids)
  return ids.length
}

/** Bodies go a day after whatever was told of them. @returns how many, at most `limit` */
export async function deletePayloadsBefore(db: Queries, before: number, limit: number): Promise<number> {
  const result = await sql`
    delete from webhook_payloads where event_seq in (
      select event_seq from (
        select event_seq, created_at from webhook_payloads order by event_seq limit ${limit}
      ) as oldest
      where created_at < ${before}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Of a deleted subscription. @returns how many, at most `limit` */
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
    .innerJoin('webhook_payloads', 'webhook_payloads.event_seq', 'webhook_deliveries.event_seq')
    .select([
      'webhook_deliveries.id',
      'webhook_deliveries.subscription_id',
      'webhook_deliveries.status',
      'webhook_deliveries.next_attempt_at',
      'webhook_deliveries.created_at',
      'webhook_deliveries.finished_at',
      'webhook_payloads.event',
      'webhook_payloads.body',
    ])
}

/** The query of a list and that of its count have different types, and the same columns. */
function narrowed<Q>(query: Q, { status, since, until }: DeliveryFilter): Q {
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
    event: row.event,
    body: row.body,
    status: row.status,
    nextAttemptAt: row.next_attempt_at,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
    attempts,
  }
}
