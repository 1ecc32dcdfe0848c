/**
 * SQL of deliveries: one row per subscription and event, their shared bodies, and their attempts.
 *
 * A delivery is pending while `next_attempt_at` is set; no other query finds pending ones. Ids are UUIDv7, so they sort by creation.
 */
import { sql, type Generated, type Insertable } from 'kysely'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { inLists, inPieces, statement } from '../../db/statement.js'
import { nextTurn } from '../../world/time/clock.js'
import { bodyForSubscription } from '../events/webhook-event.js'
import type { AttemptResult } from './attempt.js'

interface PayloadRow {
  seq: Generated<number>
  event: string
  body: string
  created_at: number
}

interface DeliveryRow {
  id: string
  subscription_id: string
  payload: number
  status: DeliveryStatus
  attempts: number
  attempts_before: number
  next_attempt_at: number | null
  created_at: number
  finished_at: number | null
}

interface AttemptRow {
  delivery_id: string
  number: number
  started_at: number
  duration_ms: number
  status_code: number
  error: string | null
  response: string | null
  user_agent: string | null
}

declare module '../../db/tables.js' {
  interface Tables {
    webhook_payloads: PayloadRow
    webhook_deliveries: DeliveryRow
    webhook_attempts: AttemptRow
  }
}

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** The body of an event, shared by all its deliveries. */
export interface Payload {
  readonly event: string
  /** JSON. */
  readonly body: string
  /** Ms since epoch UTC. */
  readonly createdAt: number
}

export interface NewDelivery {
  readonly id: string
  readonly subscriptionId: string
  /** As `insertPayloads` returned it. */
  readonly payload: number
  /** The first attempt is due then. */
  readonly createdAt: number
}

export interface DueDelivery extends NewDelivery {
  readonly event: string
  readonly body: string
  /** All attempts so far; `attemptsBefore` of them before the last replay. */
  readonly attempts: number
  readonly attemptsBefore: number
  readonly nextAttemptAt: number
}

/** Insert batches written before yielding to other work. */
const BATCHES_PER_TURN = 4

const insertPayloadRows = statement((db, { rows }: { readonly rows: readonly Insertable<PayloadRow>[] }) =>
  db.insertInto('webhook_payloads').values(rows).returning('seq'),
)

/** @returns their numbers, in order */
export async function insertPayloads(db: Queries, payloads: readonly Payload[]): Promise<number[]> {
  const rows = payloads.map(({ event, body, createdAt }) => ({ event, body, created_at: createdAt }))
  const numbers: number[] = []
  for (const piece of inPieces(rows)) {
    const { rows: inserted } = await insertPayloadRows(db, { rows: piece })
    // Numbers grow with the rows, whose order in the answer is not defined.
    numbers.push(...inserted.map(({ seq }) => seq).sort((one, other) => one - other))
  }
  return numbers
}

const insertDeliveryRows = statement((db, { rows }: { readonly rows: readonly Insertable<DeliveryRow>[] }) =>
  db.insertInto('webhook_deliveries').values(rows),
)

export async function insertDeliveries(db: Queries, deliveries: readonly NewDelivery[]): Promise<void> {
  let pieces = 0
  for (const piece of inPieces(deliveries)) {
    const rows = piece.map(one => ({
      id: one.id,
      subscription_id: one.subscriptionId,
      payload: one.payload,
      status: 'pending' as const,
      attempts: 0,
      attempts_before: 0,
      next_attempt_at: one.createdAt,
      created_at: one.createdAt,
      finished_at: null,
    }))
    await insertDeliveryRows(db, { rows })
    if (++pieces % BATCHES_PER_TURN === 0) await nextTurn()
  }
}

const selectWaiting = statement(
  (db, { subscriptionId, limit }: { readonly subscriptionId: string; readonly limit: number }) =>
    db
      .selectFrom('webhook_deliveries')
      .innerJoin('webhook_payloads', 'webhook_payloads.seq', 'webhook_deliveries.payload')
      .leftJoin('webhook_subscriptions', 'webhook_subscriptions.id', 'webhook_deliveries.subscription_id')
      .select([
        'webhook_deliveries.id',
        'webhook_deliveries.payload',
        'webhook_deliveries.attempts',
        'webhook_deliveries.attempts_before',
        'webhook_deliveries.next_attempt_at',
        'webhook_deliveries.created_at',
        'webhook_payloads.event',
        'webhook_payloads.body',
        'webhook_subscriptions.event as subscribed_to',
      ])
      .where('subscription_id', '=', subscriptionId)
      .where('next_attempt_at', 'is not', null)
      .orderBy('next_attempt_at')
      .limit(limit),
)

/** Pending deliveries, soonest first, whether due or not. */
export async function listWaiting(
  db: Queries,
  subscriptionId: string,
  limit: number,
): Promise<DueDelivery[]> {
  const { rows } = await selectWaiting(db, { subscriptionId, limit })
  return rows.map(row => ({
    id: row.id,
    subscriptionId,
    payload: row.payload,
    attempts: row.attempts,
    attemptsBefore: row.attempts_before,
    nextAttemptAt: must(row.next_attempt_at, 'next_attempt_at'),
    createdAt: row.created_at,
    ...bodyForSubscription(row.subscribed_to, row),
  }))
}

const selectSoonest = statement((db, { subscriptionId }: { readonly subscriptionId: string }) =>
  db
    .selectFrom('webhook_deliveries')
    .select('next_attempt_at')
    .where('subscription_id', '=', subscriptionId)
    .where('next_attempt_at', 'is not', null)
    .orderBy('next_attempt_at')
    .limit(1),
)

/** @returns undefined if nothing is pending */
export async function soonestDue(db: Queries, subscriptionId: string): Promise<number | undefined> {
  return (await selectSoonest(db, { subscriptionId })).rows[0]?.next_attempt_at ?? undefined
}

/** Over all subscriptions, skipping from one to the next. @returns ms since epoch UTC; undefined if nothing is pending */
export async function soonestDueOfAll(db: Queries): Promise<number | undefined> {
  const { rows } = await sql<{ soonest: number | null }>`
    with recursive step(id) as (
      select min(subscription_id) from webhook_deliveries where next_attempt_at is not null
      union all
      select (select min(subscription_id) from webhook_deliveries
        where next_attempt_at is not null and subscription_id > step.id)
      from step where step.id is not null
    )
    select min((select min(next_attempt_at) from webhook_deliveries
      where subscription_id = step.id and next_attempt_at is not null)) as soonest
    from step where step.id is not null`.execute(db)
  return rows[0]?.soonest ?? undefined
}

export interface Ended {
  readonly deliveryId: string
  /** From 1, counted over all replays. */
  readonly number: number
  readonly result: AttemptResult
  readonly then: 'succeeded' | 'failed' | { readonly nextAttemptAt: number }
}

const insertAttemptRows = statement((db, { rows }: { readonly rows: readonly Insertable<AttemptRow>[] }) =>
  db.insertInto('webhook_attempts').values(rows),
)

interface Finish extends Readonly<Record<string, unknown>> {
  readonly ids: readonly string[]
  readonly number: number
  readonly status: string
  readonly at: number
}

const finish = statement((db, { ids, number, status, at }: Finish) =>
  db
    .updateTable('webhook_deliveries')
    .set({ status: status as DeliveryStatus, attempts: number, next_attempt_at: null, finished_at: at })
    .where('id', 'in', ids)
    .where('attempts', '<', number)
    .returning('id'),
)

/** A delivery that was failed meanwhile, with its webhook, stays so. */
const putOff = statement(
  (db, { id, number, at }: { readonly id: string; readonly number: number; readonly at: number }) =>
    db
      .updateTable('webhook_deliveries')
      .set({
        attempts: number,
        next_attempt_at: sql<
          number | null
        >`case when next_attempt_at is not null then cast(${at} as bigint) end`,
      })
      .where('id', '=', id)
      .where('attempts', '<', number)
      .returning('id'),
)

/**
 * At most one attempt per delivery. Passes over what is recorded already, since the answer to a commit may be lost, and
 * over deliveries that were deleted meanwhile with their webhook.
 *
 * @param at ms since epoch UTC
 */
export async function recordAttempts(db: Queries, ended: readonly Ended[], at: number): Promise<void> {
  const changed = new Set<string>()
  for (const { number, status, ids } of finishedAlike(ended))
    for (const list of inLists(ids))
      for (const { id } of (await finish(db, { ids: list, number, status, at })).rows) changed.add(id)
  for (const { deliveryId, number, then } of ended)
    if (typeof then === 'object')
      for (const { id } of (await putOff(db, { id: deliveryId, number, at: then.nextAttemptAt })).rows)
        changed.add(id)
  const made = ended.filter(({ deliveryId }) => changed.has(deliveryId))
  const rows = made.map(({ deliveryId, number, result }) => ({
    delivery_id: deliveryId,
    number,
    started_at: result.startedAt,
    duration_ms: result.durationMs,
    status_code: result.statusCode,
    error: result.error,
    response: result.response,
    user_agent: result.userAgent,
  }))
  for (const piece of inPieces(rows)) await insertAttemptRows(db, { rows: piece })
}

/** Those that end, by result and number: each group is one statement. */
function finishedAlike(
  ended: readonly Ended[],
): Iterable<{ readonly number: number; readonly status: 'succeeded' | 'failed'; readonly ids: string[] }> {
  const groups = new Map<string, { number: number; status: 'succeeded' | 'failed'; ids: string[] }>()
  for (const { deliveryId, number, then: status } of ended) {
    if (typeof status === 'object') continue
    const group = groups.get(`${status} ${number}`)
    if (group) group.ids.push(deliveryId)
    else groups.set(`${status} ${number}`, { number, status, ids: [deliveryId] })
  }
  return groups.values()
}

/** Ends a delivery without recording its attempt. */
export async function finishDelivery(
  db: Queries,
  { deliveryId, number }: Pick<Ended, 'deliveryId' | 'number'>,
  status: 'succeeded' | 'failed',
  at: number,
): Promise<void> {
  await finish(db, { ids: [deliveryId], number, status, at })
}

/** Fails an ended subscription's pending deliveries. @returns how many, at most `limit` */
export async function failWaiting(
  db: Queries,
  subscriptionId: string,
  at: number,
  limit: number,
): Promise<number> {
  const ids = (await listWaiting(db, subscriptionId, limit)).map(({ id }) => id)
  for (const list of inLists(ids))
    await db
      .updateTable('webhook_deliveries')
      .set({ status: 'failed', next_attempt_at: null, finished_at: at })
      .where('id', 'in', list)
      .execute()
  return ids.length
}
