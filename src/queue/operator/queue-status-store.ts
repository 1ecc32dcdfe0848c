/**
 * SQL of queue counts for `postroad top` and the metrics.
 *
 * `countByDestination` walks two indexes completely, some tenths of a second for a million entries: run it in a
 * separate process. `measureQueue` runs in the slow-reader threads: each statement is answered by an index alone, and
 * message ids sort by age, so the oldest is the smallest.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { addressDomain } from '../../mail/address.js'
import type { Outcome } from '../../mail/outcome.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'
import { laneFromKey } from '../lane.js'

export interface WaitingCounts {
  readonly queued: number
  /** Held by the operator or a paused campaign. */
  readonly held: number
  readonly due: number
}

export interface DestinationCounts extends WaitingCounts {
  readonly destination: string
}

/** Most mail first. */
export async function countByDestination(db: Queries, now: number): Promise<DestinationCounts[]> {
  const all = await db
    .selectFrom('queue')
    .select(['destination', e => e.fn.countAll<number>().as('queued')])
    .groupBy('destination')
    .execute()
  const lanes = await db
    .selectFrom('queue')
    .select([
      'lane',
      e => e.fn.countAll<number>().as('unheld'),
      sql<number>`sum(case when next_attempt_at <= ${now} then 1 else 0 end)`.as('due'),
    ])
    .where('is_held', '=', 0)
    .groupBy('lane')
    .execute()
  const paused = await listHeldCampaigns(db)
  const unheld = new Map<string, { unheld: number; due: number }>()
  for (const row of lanes) {
    const { destination, campaignId } = laneFromKey(row.lane)
    if (campaignId !== undefined && paused.has(campaignId)) continue
    const sum = unheld.get(destination) ?? { unheld: 0, due: 0 }
    unheld.set(destination, { unheld: sum.unheld + row.unheld, due: sum.due + row.due })
  }
  return all
    .map(row => {
      const queued = row.queued
      const active = unheld.get(row.destination)
      // The queue may change between the two statements.
      const held = Math.max(0, queued - (active?.unheld ?? 0))
      return { destination: row.destination, queued, held, due: active?.due ?? 0 }
    })
    .sort((a, b) => b.queued - a.queued || (a.destination < b.destination ? -1 : 1))
}

export interface EndedAttempt {
  readonly seq: number
  /** Ms since epoch UTC. */
  readonly finishedAt: number
  readonly kind: Outcome['kind']
  readonly destination: string
}

const TAIL_PAGE = 1_000
/** Maximum attempts per call; a busier minute is cut off here. */
const LONGEST_TAIL = 200_000

/**
 * The newest attempts, newest first, back to `afterSeq` or `since`. Costs depend on their number, not on the length of
 * the log.
 *
 * @param afterSeq the newest one already read
 * @param since ms since epoch UTC
 */
export async function readAttemptTail(db: Queries, afterSeq: number, since: number): Promise<EndedAttempt[]> {
  const tail: EndedAttempt[] = []
  let before: number | undefined
  while (tail.length < LONGEST_TAIL) {
    const rows = await db
      .selectFrom('attempts')
      .innerJoin('messages', 'messages.id', 'attempts.message_id')
      .select(['attempts.seq', 'attempts.finished_at', 'attempts.kind', 'messages.recipient'])
      .where('attempts.seq', '>', afterSeq)
      .$if(before !== undefined, query => query.where('attempts.seq', '<', before ?? 0))
      .orderBy('attempts.seq', 'desc')
      .limit(TAIL_PAGE)
      .execute()
    const page = rows.map(row => ({
      seq: row.seq,
      finishedAt: row.finished_at,
      kind: row.kind,
      destination: addressDomain(row.recipient),
    }))
    const recent = page.filter(({ finishedAt }) => finishedAt > since)
    tail.push(...recent)
    // Attempts of one commit are slightly out of order; a page without recent ones is the end.
    if (page.length < TAIL_PAGE || recent.length === 0) break
    before = page.at(-1)?.seq
  }
  return tail
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
