/**
 * SQL of what a claim looks for: due messages of lanes, and when the next ones fall due.
 *
 * Many lanes are one statement, since each statement is a round trip on PostgreSQL. Uses the index `queue_due`.
 */
import { sql, type SelectQueryBuilder } from 'kysely'
import type { Queries } from '../db/database.js'
import { inPieces, statement } from '../db/statement.js'
import type { Tables } from '../db/tables.js'
import { entryFromRow, type QueueEntry } from './queue-store.js'

/** This node's parts of a lane whose destination is split among nodes. */
export interface LanePart {
  readonly of: number
  /** From 0. */
  readonly parts: readonly number[]
}

/** Nodes share a PostgreSQL database only. */
const isPart = ({ of, parts }: LanePart) =>
  sql<boolean>`mod(abs(hashtext(message_id)::bigint), ${of}::bigint) in (${sql.join(parts)})`

/** A lane and how many of its entries are wanted. */
export interface LaneLook {
  readonly lane: string
  readonly limit: number
  /** No entry falls due earlier, ms since epoch UTC. While a snapshot is held open, index entries of delivered mail remain; the search begins behind them. */
  readonly from?: number
  /** If other nodes claim from the lane as well. */
  readonly part?: LanePart
}

interface LaneRow extends Readonly<Record<string, unknown>> {
  readonly lane: string
  readonly from: number
  readonly limit: number
}

const selectLanes = statement((db, { lanes, now }: { lanes: readonly LaneRow[]; now: number }) =>
  unionOf(
    lanes.map(({ lane, from, limit }) =>
      db
        .selectFrom(eb =>
          eb
            .selectFrom('queue')
            .selectAll()
            .where('lane', '=', lane)
            .where('is_held', '=', 0)
            .where('claimed_by', 'is', null)
            .where('next_attempt_at', '>=', from)
            .where('next_attempt_at', '<=', now)
            .orderBy('next_attempt_at')
            .orderBy('message_id')
            .limit(limit)
            .as('due'),
        )
        .selectAll(),
    ),
  ),
)

/** Due entries of each lane that are neither held nor claimed, longest due first. */
export async function selectDue(
  db: Queries,
  lanes: readonly LaneLook[],
  now: number,
): Promise<Map<string, QueueEntry[]>> {
  const found = new Map<string, QueueEntry[]>(lanes.map(({ lane }) => [lane, []]))
  const whole = lanes.filter(({ part }) => !part).map(({ lane, limit, from = 0 }) => ({ lane, from, limit }))
  for (const piece of inPieces(whole))
    for (const row of (await selectLanes(db, { lanes: piece, now })).rows)
      found.get(row.lane)?.push(entryFromRow(row))
  for (const { lane, limit, from = 0, part } of lanes)
    if (part) found.set(lane, await selectDuePart(db, lane, part, { from, now, limit }))
  // A union promises no order.
  for (const entries of found.values()) entries.sort(byDueTime)
  return found
}

async function selectDuePart(
  db: Queries,
  lane: string,
  part: LanePart,
  { from, now, limit }: { readonly from: number; readonly now: number; readonly limit: number },
): Promise<QueueEntry[]> {
  const free = db.selectFrom('queue').selectAll().where('lane', '=', lane).where('is_held', '=', 0)
  const unclaimed = free.where('claimed_by', 'is', null).where('next_attempt_at', '>=', from)
  const due = unclaimed.where('next_attempt_at', '<=', now).where(isPart(part))
  return (await due.orderBy('next_attempt_at').limit(limit).execute()).map(entryFromRow)
}

function byDueTime(one: QueueEntry, other: QueueEntry): number {
  return one.nextAttemptAt - other.nextAttemptAt || (one.messageId < other.messageId ? -1 : 1)
}

interface LaneName extends Readonly<Record<string, unknown>> {
  readonly lane: string
}

const selectNextDue = statement((db, { lanes, after }: { lanes: readonly LaneName[]; after: number }) =>
  unionOf(
    lanes.map(({ lane }) =>
      db
        .selectFrom(eb =>
          eb
            .selectFrom('queue')
            .select(['lane', 'next_attempt_at'])
            .where('lane', '=', lane)
            .where('is_held', '=', 0)
            .where('claimed_by', 'is', null)
            .where('next_attempt_at', '>', after)
            .orderBy('next_attempt_at')
            .limit(1)
            .as('next'),
        )
        .selectAll(),
    ),
  ),
)

/** By lane: when its next entry after `after` falls due that is neither held nor claimed. Lanes without one are missing. */
export async function nextDueTimes(
  db: Queries,
  lanes: readonly Pick<LaneLook, 'lane' | 'part'>[],
  after: number,
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const piece of inPieces(lanes.filter(({ part }) => !part).map(({ lane }) => ({ lane }))))
    for (const row of (await selectNextDue(db, { lanes: piece, after })).rows)
      found.set(row.lane, row.next_attempt_at)
  for (const { lane, part } of lanes) {
    const next = part && (await nextDueOfPart(db, lane, part, after))
    if (next !== undefined) found.set(lane, next)
  }
  return found
}

async function nextDueOfPart(
  db: Queries,
  lane: string,
  part: LanePart,
  after: number,
): Promise<number | undefined> {
  const free = db.selectFrom('queue').select('next_attempt_at').where('lane', '=', lane)
  const later = free.where('is_held', '=', 0).where('claimed_by', 'is', null)
  const next = later.where('next_attempt_at', '>', after).where(isPart(part)).orderBy('next_attempt_at')
  return (await next.limit(1).executeTakeFirst())?.next_attempt_at
}

function unionOf<T>(
  queries: readonly SelectQueryBuilder<Tables, never, T>[],
): SelectQueryBuilder<Tables, never, T> {
  return queries.reduce((all, next) => all.unionAll(next))
}
