/**
 * SQL of the live view: what waits, by destination, and how the attempts of the last minute ended.
 *
 * Used by `postroad top`, in a process of its own: the counts walk through two indexes from end to end, some tenths of a
 * second for a million entries, which a server has no time for.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { addressDomain } from '../../mail/address.js'
import type { Outcome } from '../../mail/outcome.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'
import { laneFromKey } from '../lane.js'

export interface WaitingCounts {
  /** All that is queued, held or not. */
  readonly queued: number
  /** By the operator, or since its campaign is paused. */
  readonly held: number
  /** Not held, and its time has come. */
  readonly due: number
}

export interface DestinationCounts extends WaitingCounts {
  readonly destination: string
}

/** Most mail first. Each of the two statements is answered by an index alone. */
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
      // The server went on between the two statements.
      const held = Math.max(0, queued - (active?.unheld ?? 0))
      return { destination: row.destination, queued, held, due: active?.due ?? 0 }
    })
    .sort((a, b) => b.queued - a.queued || (a.destination < b.destination ? -1 : 1))
}

/** One attempt as the live view needs it. */
export interface EndedAttempt {
  /** Grows with every attempt that was written down. */
  readonly seq: number
  /** Ms since epoch UTC. */
  readonly finishedAt: number
  readonly kind: Outcome['kind']
  readonly destination: string
}

const TAIL_PAGE = 1_000
/** Attempts read for one look; a busier minute than this is shown as this. */
const LONGEST_TAIL = 200_000

/**
 * The newest attempts, newest first: back to one that was seen before or ended earlier than asked for. Its cost is their
 * number, however long the log is.
 *
 * @param afterSeq of the newest one seen before
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
    // Attempts of one commit are a little out of order; a page with nothing recent is the end for sure.
    if (page.length < TAIL_PAGE || recent.length === 0) break
    before = page.at(-1)?.seq
  }
  return tail
}
