/**
 * SQL of queue counts for live figures and metrics.
 *
 * Runs in the slow-reader threads: each count is answered by an index alone or bounded, and message ids sort by age, so the oldest is the
 * smallest.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { totalsOfAll, type MailBalance } from '../../messages/mail-totals-store.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'
import { laneFromKey } from '../lane.js'

export interface DestinationCounts {
  readonly destination: string
  readonly queued: number
  /** Held by the operator or a paused campaign. */
  readonly held: number
  readonly due: number
  /** More messages are queued than were counted. */
  readonly hasMore: boolean
}

/** @param most messages counted */
export async function countDestination(
  db: Queries,
  destination: string,
  now: number,
  most: number,
): Promise<DestinationCounts> {
  const counted = db
    .selectFrom('queue')
    .select(['lane', 'is_held', 'next_attempt_at'])
    .where('destination', '=', destination)
    .limit(most)
  const lanes = await db
    .selectFrom(counted.as('counted'))
    .select([
      'lane',
      'is_held',
      e => e.fn.countAll<number>().as('queued'),
      sql<number>`count(case when next_attempt_at <= ${now} then 1 end)`.as('due'),
    ])
    .groupBy(['lane', 'is_held'])
    .execute()
  const paused = await listHeldCampaigns(db)
  const sum = { queued: 0, held: 0, due: 0 }
  for (const row of lanes) {
    sum.queued += row.queued
    if (row.is_held === 1 || paused.has(laneFromKey(row.lane).campaignId ?? '')) sum.held += row.queued
    else sum.due += row.due
  }
  return { destination, ...sum, hasMore: sum.queued === most }
}

export interface LiveQueue extends MailBalance {
  /** Held by an operator. */
  readonly held: number
  /** Not held by an operator, and due. */
  readonly due: number
  /** When the oldest was enqueued, ms since epoch UTC. */
  readonly oldestAt: number | undefined
}

/** Size of the queue and mail totals, of the same moment. Walks two indexes. @param db the slow reader */
export async function measureLiveQueue(db: Queries, now: number): Promise<LiveQueue> {
  const { rows } = await sql<MailBalance & { unheld: number; due: number; oldest_at: number | null }>`
    select totals.*, waiting.waiting, unheld.unheld, unheld.due,
      (select enqueued_at from queue order by message_id limit 1) as oldest_at
    from (select ${totalsOfAll} from mail_totals) as totals,
      (select count(*) as waiting from queue) as waiting,
      (select count(*) as unheld, count(case when next_attempt_at <= ${now} then 1 end) as due
        from queue where is_held = 0) as unheld`.execute(db)
  const [row] = rows
  if (!row) throw new Error('sum query returned no row')
  const { unheld, due, oldest_at: oldestAt, ...balance } = row
  return { ...balance, held: balance.waiting - unheld, due, oldestAt: oldestAt ?? undefined }
}

export interface Waiting {
  readonly messages: number
  /** When the oldest was enqueued, ms since epoch UTC; undefined if none waits. */
  readonly oldestAt: number | undefined
}

export interface QueueDepth {
  readonly all: Waiting
  readonly held: number
  readonly named: ReadonlyMap<string, Waiting>
  readonly others: Waiting
}

/** Entries scanned for the oldest other one; if all belong to named destinations, the last one is used. */
const OLDEST_SCANNED = 1_000

/**
 * @param db the slow reader
 * @param destinations at most a few dozen
 */
export async function measureQueue(db: Queries, destinations: readonly string[]): Promise<QueueDepth> {
  const rows = destinations.length === 0 ? [] : await measureDestinations(db, destinations)
  const { messages } = await count(db)
  const unheld = await countUnheld(db)
  const head = await db
    .selectFrom('queue')
    .select(['destination', 'enqueued_at'])
    .orderBy('message_id')
    .limit(OLDEST_SCANNED)
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
  // The queue may change between the statements.
  const others = Math.max(0, messages - rows.reduce((sum, row) => sum + row.messages, 0))
  const oldestOther = head.find(row => !isNamed.has(row.destination)) ?? head.at(-1)
  return {
    all: { messages, oldestAt: head[0]?.enqueued_at },
    held: Math.max(0, messages - unheld),
    named,
    others: { messages: others, oldestAt: others === 0 ? undefined : oldestOther?.enqueued_at },
  }
}

function measureDestinations(db: Queries, destinations: readonly string[]) {
  return db
    .selectFrom('queue')
    .select(e => [
      'destination',
      e.fn.countAll<number>().as('messages'),
      e.fn.min('message_id').as('oldest_id'),
    ])
    .where('destination', 'in', destinations)
    .groupBy('destination')
    .execute()
}

async function count(db: Queries): Promise<{ messages: number }> {
  return db
    .selectFrom('queue')
    .select(e => e.fn.countAll<number>().as('messages'))
    .executeTakeFirstOrThrow()
}

/** Answered by the partial index of unheld rows. */
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
