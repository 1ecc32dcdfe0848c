/**
 * SQL of how much waits, for monitors: in all, held, and for certain destinations, with what has waited longest of each.
 *
 * Used by the metrics, which ask now and then and in the reading threads: each statement goes along an index alone, and the ids of
 * messages are in the order of their making, so that the oldest is the first.
 */
import type { Queries } from '../../db/database.js'

export interface Waiting {
  readonly messages: number
  /** When the one that has waited longest was queued, ms since epoch UTC; undefined where nothing waits. */
  readonly oldestAt: number | undefined
}

export interface QueueDepth {
  /** Held or not. */
  readonly all: Waiting
  readonly held: number
  /** Those of the named destinations that have mail. */
  readonly named: ReadonlyMap<string, Waiting>
  /** What waits for any other. */
  readonly others: Waiting
}

/** Entries that are looked through for the oldest of the others; where the first are all of named ones, their last stands for it. */
const LOOKED_THROUGH = 1_000

/** @param db for reads that take long @param destinations a few dozen */
export async function measureQueue(db: Queries, destinations: readonly string[]): Promise<QueueDepth> {
  const rows = await db
    .selectFrom('queue')
    .select(e => [
      'destination',
      e.fn.countAll<number>().as('messages'),
      e.fn.min('message_id').as('oldest_id'),
    ])
    .where('destination', 'in', destinations)
    .groupBy('destination')
    .execute()
  const { messages } = await count(db)
  const unheld = await countUnheld(db)
  const head = await db
    .selectFrom('queue')
    .select(['destination', 'enqueued_at'])
    .orderBy('message_id')
    .limit(LOOKED_THROUGH)
    .execute()
  const enqueuedAt = await findMoments(
    db,
    rows.map(row => row.oldest_id),
  )
  const named = new Map(
    rows.map(row => [
      row.destination,
      { messages: row.messages, oldestAt: enqueuedAt.get(row.oldest_id) } as const,
    ]),
  )
  const isNamed = new Set(destinations)
  // The server goes on between the statements.
  const others = Math.max(0, messages - rows.reduce((sum, row) => sum + row.messages, 0))
  const oldestOther = head.find(row => !isNamed.has(row.destination)) ?? head.at(-1)
  return {
    all: { messages, oldestAt: head[0]?.enqueued_at },
    held: Math.max(0, messages - unheld),
    named,
    others: { messages: others, oldestAt: others === 0 ? undefined : oldestOther?.enqueued_at },
  }
}

async function count(db: Queries): Promise<{ messages: number }> {
  return db
    .selectFrom('queue')
    .select(e => e.fn.countAll<number>().as('messages'))
    .executeTakeFirstOrThrow()
}

/** By the index that has nothing else in it. */
async function countUnheld(db: Queries): Promise<number> {
  const { messages } = await db
    .selectFrom('queue')
    .select(e => e.fn.countAll<number>().as('messages'))
    .where('is_held', '=', 0)
    .executeTakeFirstOrThrow()
  return messages
}

async function findMoments(db: Queries, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('queue')
    .select(['message_id', 'enqueued_at'])
    .where('message_id', 'in', ids)
    .execute()
  return new Map(rows.map(row => [row.message_id, row.enqueued_at]))
}
