/**
 * SQL of where a message stands in the queue: waiting for its first attempt, in an attempt, or waiting for the next one.
 *
 * Read by the message log. Waiting messages of a workspace are found by two partial indexes, newest first.
 */
import { sql } from 'kysely'
import { firstIdAt } from '../core/ids.js'
import type { Queries } from '../db/database.js'
import { inLists } from '../db/statement.js'

export const WAITING_STATES = ['queued', 'deferred'] as const
/** `queued`: not tried yet. `deferred`: tried, and to be tried again. */
export type WaitingState = (typeof WAITING_STATES)[number]

export const DELIVERY_STATES = [...WAITING_STATES, 'sending'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

export function isWaitingState(text: string): text is WaitingState {
  return (WAITING_STATES as readonly string[]).includes(text)
}

/** To the letter as in the partial indexes, which are not used otherwise. */
const IS_WAITING: Readonly<Record<WaitingState, ReturnType<typeof sql<boolean>>>> = {
  queued: sql<boolean>`attempts = 0`,
  deferred: sql<boolean>`attempts > 0 and claimed_by is null`,
}

export interface WaitingSearch {
  readonly state: WaitingState
  readonly workspaceId: string
  /** Accepted since; ms since epoch UTC. */
  readonly since?: number | undefined
  /** Newer ones were listed before. */
  readonly beforeId?: string | undefined
}

/** Ids of messages, newest first. Scheduled ones are among those not tried yet. */
export async function listWaiting(
  db: Queries,
  { state, workspaceId, since, beforeId }: WaitingSearch,
  limit: number,
): Promise<string[]> {
  let query = db
    .selectFrom('queue')
    .select('message_id')
    .where('workspace_id', '=', workspaceId)
    .where(IS_WAITING[state])
  if (since !== undefined) query = query.where('message_id', '>=', firstIdAt(since))
  if (beforeId !== undefined) query = query.where('message_id', '<', beforeId)
  const rows = await query.orderBy('message_id', 'desc').limit(limit).execute()
  return rows.map(row => row.message_id)
}

/** Ids of all waiting messages, as a condition of a query on messages. */
export function isWaiting(state: WaitingState) {
  return sql<boolean>`id in (select message_id from queue where ${IS_WAITING[state]})`
}

/** Column of a query that joins the message's row of the queue, if it has one, as `queue`. */
export const deliveryState = sql<DeliveryState | null>`case
  when queue.claimed_by is not null then 'sending'
  when queue.attempts = 0 then 'queued'
  when queue.attempts > 0 then 'deferred' end`

/** Of those that are in the queue. */
export async function findDeliveryStates(
  db: Queries,
  messageIds: readonly string[],
): Promise<ReadonlyMap<string, DeliveryState>> {
  const states = new Map<string, DeliveryState>()
  for (const list of inLists(messageIds)) {
    const rows = await db
      .selectFrom('queue')
      .select(['message_id', 'attempts', 'claimed_by'])
      .where('message_id', 'in', list)
      .execute()
    for (const { message_id: id, attempts, claimed_by: holder } of rows)
      states.set(id, holder !== null ? 'sending' : attempts === 0 ? 'queued' : 'deferred')
  }
  return states
}
