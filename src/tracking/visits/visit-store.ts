/** SQL of visits: those stored and not yet counted, and what judging them needs to know of their messages. */
import { sql, type Generated } from 'kysely'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { rowsInsert } from '../../db/insert-rows.js'
import { inLists, statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import { nextTurn } from '../../world/time/clock.js'

/** A request for the pixel or a link of a message, by a person or a machine. */
export interface Visit {
  readonly kind: 'open' | 'click'
  readonly messageId: string
  /** Ms since epoch UTC. */
  readonly at: number
  readonly address: string
  /** At most 500 characters. */
  readonly userAgent: string
  /** A HEAD request, which no mail reader sends. */
  readonly isHead: boolean
  readonly url?: string
}

export interface StoredVisit extends Visit {
  readonly seq: number
}

interface VisitRow {
  seq: Generated<number>
  kind: 'open' | 'click'
  message_id: string
  at: number
  address: string
  user_agent: string
  is_head: Flag
  url: string | null
}

declare module '../../db/tables.js' {
  interface Tables {
    visits: VisitRow
  }
}

const COLUMNS = ['kind', 'message_id', 'at', 'address', 'user_agent', 'is_head', 'url'] as const
const insertRows = rowsInsert({ table: 'visits', columns: () => COLUMNS })

/** Inserted before yielding to the event loop: a few milliseconds. */
const ROWS_AT_ONCE = 256

export async function insertVisits(db: Queries, visits: readonly Visit[]): Promise<void> {
  // prettier-ignore
  const rows = visits.map(({ kind, messageId, at, address, userAgent, isHead, url }) => [
    kind, messageId, at, address, userAgent, flag(isHead), url ?? null,
  ])
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    if (from > 0) await nextTurn()
    await insertRows(db, rows.slice(from, from + ROWS_AT_ONCE))
  }
}

/** In the order they were stored. */
export async function listVisits(db: Queries, afterSeq: number, limit: number): Promise<StoredVisit[]> {
  const { rows } = await selectVisits(db, { afterSeq, limit })
  return rows.map(
    ({ seq, kind, message_id: messageId, at, address, user_agent: userAgent, is_head, url }) => ({
      seq,
      kind,
      messageId,
      at,
      address,
      userAgent,
      isHead: is_head === 1,
      ...given({ url: url ?? undefined }),
    }),
  )
}

const selectVisits = statement((db, { afterSeq, limit }: { afterSeq: number; limit: number }) =>
  db.selectFrom('visits').selectAll().where('seq', '>', afterSeq).orderBy('seq').limit(limit),
)

/** @returns those that were still there */
export async function deleteVisits(db: Queries, seqs: readonly number[]): Promise<ReadonlySet<number>> {
  const deleted = new Set<number>()
  for (const list of inLists(seqs))
    for (const { seq } of (await deleteListed(db, { seqs: list })).rows) deleted.add(seq)
  return deleted
}

const deleteListed = statement((db, { seqs }: { seqs: readonly number[] }) =>
  db.deleteFrom('visits').where('seq', 'in', seqs).returning('seq'),
)

/** An upper bound, read from the ends of the key: visits are deleted in about the order they were stored. */
export async function countVisits(db: Queries): Promise<number> {
  const { first, last } = await db
    .selectFrom('visits')
    .select(({ fn }) => [fn.min<number | null>('seq').as('first'), fn.max<number | null>('seq').as('last')])
    .executeTakeFirstOrThrow()
  return first === null || last === null ? 0 : last - first + 1
}

const selectMoments = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('messages').select(['id', 'delivered_at', 'sent_at']).where('id', 'in', ids),
)

/** Delivery time by message id, or the time of the first attempt if not yet delivered. */
export async function findDeliveryMoments(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number | null>> {
  const moments = new Map<string, number | null>()
  for (const list of inLists(ids))
    for (const row of (await selectMoments(db, { ids: list })).rows)
      moments.set(row.id, row.delivered_at ?? row.sent_at)
  return moments
}

/** Longer HTML is judged by its beginning. */
const MAX_HTML = 262_144

/** @returns the beginning of the HTML with its merge tags; undefined if there is none or it was pruned */
export async function findHtmlSource(db: Queries, messageId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .select(sql<string | null>`substr(message_contents.html, 1, ${sql.lit(MAX_HTML)})`.as('html'))
    .where('messages.id', '=', messageId)
    .executeTakeFirst()
  return row?.html ?? undefined
}
