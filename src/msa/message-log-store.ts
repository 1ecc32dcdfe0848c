/**
 * SQL of the message log: a workspace's messages, newest first.
 *
 * Every look is bounded, however many messages there are. Identifiers are UUIDv7, so that `(workspace_id, id)` is the order
 * in time as well, and recipients, campaigns and rare states have indexes of their own. The two states that most messages are
 * in (sent, delivered) have none, since every message would pay for it: of those only the newest of the period are looked at.
 */
import { sql, type SelectQueryBuilder } from 'kysely'
import { firstIdAt } from '../core/ids.js'
import type { Queries } from '../db/database.js'
import type { Tables } from '../db/tables.js'
import type { Listing, Page } from '../http/pagination.js'
import type { MessageStatus } from '../queue/message-status-store.js'
import { messageFromRow, type Message } from '../queue/message-store.js'

export interface MessageFilter {
  readonly to?: string
  readonly status?: MessageStatus
  /** Ms since epoch UTC; `since` included, `until` not. */
  readonly since?: number
  readonly until?: number
  readonly campaignId?: string
}

/** Counted beyond the page at most. */
export const MOST_COUNTED = 10_000
/** Messages looked through for a state without an index. */
export const MOST_LOOKED_AT = 20_000

export interface LoggedMessage extends Message {
  readonly subject: string
}

/** `total` is exact up to `MOST_COUNTED` rows beyond the page, and says so many where there are more. */
export async function listMessages(
  db: Queries,
  workspaceId: string,
  filter: MessageFilter,
  page: Page,
): Promise<Listing<LoggedMessage>> {
  const found = matching(db, workspaceId, filter)
  const rows = await db
    .selectFrom(found.selectAll().orderBy('id', 'desc').limit(page.limit).offset(page.offset).as('messages'))
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .selectAll('messages')
    .select('message_contents.subject')
    .orderBy('messages.id', 'desc')
    .execute()
  const { total } = await db
    .selectFrom(
      found
        .select('id')
        .limit(page.offset + page.limit + MOST_COUNTED)
        .as('counted'),
    )
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return { items: rows.map(row => ({ ...messageFromRow(row), subject: row.subject })), total }
}

function matching(db: Queries, workspaceId: string, filter: MessageFilter) {
  const { to, status, campaignId } = filter
  const isCommon = status === 'sent' || status === 'delivered'
  const isFound = to !== undefined || campaignId !== undefined
  let query = isCommon && !isFound ? newest(db, workspaceId, filter) : within(db, workspaceId, filter)
  if (to !== undefined) query = query.where(sql<boolean>`lower(recipient) = lower(${to})`)
  if (status !== undefined) query = query.where('status', '=', status)
  // A partial index is only taken where its own condition stands in the query, to the letter.
  if (status !== undefined && !isCommon)
    query = query.where(sql<boolean>`status not in ('sent', 'delivered')`)
  if (campaignId !== undefined) query = query.where('campaign_id', '=', campaignId)
  return query
}

function newest(db: Queries, workspaceId: string, filter: MessageFilter) {
  return db.selectFrom(
    within(db, workspaceId, filter).selectAll().orderBy('id', 'desc').limit(MOST_LOOKED_AT).as('messages'),
  ) as unknown as ReturnType<typeof within>
}

/** An identifier is made a moment after the message's own time was read. */
const ID_LAG_MS = 1_000

function within(
  db: Queries,
  workspaceId: string,
  { since, until }: MessageFilter,
): SelectQueryBuilder<Tables, 'messages', object> {
  let query = db.selectFrom('messages').where('workspace_id', '=', workspaceId)
  if (since !== undefined) query = query.where('id', '>=', firstIdAt(since)).where('created_at', '>=', since)
  if (until !== undefined)
    query = query.where('id', '<', firstIdAt(until + ID_LAG_MS)).where('created_at', '<', until)
  return query
}
