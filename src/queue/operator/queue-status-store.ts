/**
 * SQL of queue counts for live figures and metrics.
 *
 * Runs in the slow-reader threads: each count is answered by an index alone or bounded, and message ids sort by age, so the oldest is the
 * smallest.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import type { Flag } from '../../db/tables.js'
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

/** Destinations without mail are omitted. @param destinations at most a few dozen @param most messages counted for each */
export async function countDestinations(
  db: Queries,
  destinations: readonly string[],
  now: number,
  most: number,
): Promise<DestinationCounts[]> {
  if (destinations.length === 0) return []
  const { rows } = await sql<{ lane: string; is_held: Flag; queued: number; due: number }>`
    ${sql.join(
      destinations.map(
        destination => sql`
          select lane, is_held, count(*) as queued, count(case when next_attempt_at <= ${now} then 1 end) as due
          from (select lane, is_held, next_attempt_at from queue where destination = ${destination} limit ${most}) as counted
          group by lane, is_held`,
      ),
      sql` union all `,
    )}`.execute(db)
  const paused = await listHeldCampaigns(db)
  const sums = new Map<string, Omit<DestinationCounts, 'destination' | 'hasMore'>>()
  for (const row of rows) {
    const { destination, campaignId } = laneFromKey(row.lane)
    const isHeld = row.is_held === 1 || paused.has(campaignId ?? '')
    const { queued, held, due } = sums.get(destination) ?? { queued: 0, held: 0, due: 0 }
    sums.set(destination, {
      queued: queued + row.queued,
      held: held + (isHeld ? row.queued : 0),
      due: due + (isHeld ? 0 : row.due),
    })
  }
  return [...sums].map(([destination, sum]) => ({ destination, ...sum, hasMore: sum.queued === most }))
}

export interface LiveQueue extends MailBalance {
  /** When the oldest was enqueued, ms since epoch UTC. */
  readonly oldestAt: number | undefined
}

/** Size of the queue and mail totals, of the same moment. A plain count reads no rows: 5 ms for 10 million. */
export async function measureLiveQueue(db: Queries): Promise<LiveQueue> {
  const { rows } = await sql<MailBalance & { oldest_at: number | null }>`
    select ${totalsOfAll}, (select count(*) from queue) as waiting,
      (select enqueued_at from queue order by message_id limit 1) as oldest_at
    from mail_totals`.execute(db)
  const [row] = rows
  if (!row) throw new Error('sum query returned no row')
  const { oldest_at: oldestAt, ...balance } = row
  return { ...balance, oldestAt: oldestAt ?? undefined }
}

export interface HeldAndDue {
  /** Held by an operator. */
  readonly held: number
  /** Not held by an operator, not in progress, and due. */
  readonly due: number
}

/** Reads an index entry of each message: 30 ms for 100,000. @param db the slow reader */
export async function countHeldAndDue(db: Queries, now: number): Promise<HeldAndDue> {
  const { rows } = await sql<HeldAndDue>`
    select (select count(*) from queue where is_held = 1) as held, count(*) as due
    from queue where is_held = 0 and claimed_by is null and next_attempt_at <= ${now}`.execute(db)
  return rows[0] ?? { held: 0, due: 0 }
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
export function measureQueue(db: Queries, destinations: readonly string[]): Promise<QueueDepth> {
  return snapshot(db, db => measureAtOneMoment(db, destinations))
}

async function measureAtOneMoment(db: Queries, destinations: readonly string[]): Promise<QueueDepth> {
  const rows = destinations.length === 0 ? [] : await measureDestinations(db, destinations)
  const { messages } = await count(db)
  const held = await countHeld(db)
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
  const others = messages - rows.reduce((sum, row) => sum + row.messages, 0)
  const oldestOther = head.find(row => !isNamed.has(row.destination)) ?? head.at(-1)
  return {
    all: { messages, oldestAt: head[0]?.enqueued_at },
    held,
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

/** Answered by the partial index of held rows. */
async function countHeld(db: Queries): Promise<number> {
  const { messages } = await db
    .selectFrom('queue')
    .select(e => e.fn.countAll<number>().as('messages'))
    .where('is_held', '=', 1)
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
