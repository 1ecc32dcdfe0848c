/**
 * SQL of retention: finds and deletes old messages and contents.
 *
 * A message with a queue row (due, deferred, scheduled or held) is never deleted, however old; the deleting statements
 * check this again. A content is cleared when all its messages are done; rows are deleted later, and only for cleared
 * contents.
 */
import { sql } from 'kysely'
import { firstIdAt } from '../core/ids.js'
import type { Queries } from '../db/database.js'

/** Keyset of the last content read. */
export interface ContentPlace {
  readonly createdAt: number
  readonly id: string
}

export interface OldContent extends ContentPlace {
  readonly mayHaveParts: boolean
  /** Its messages may have merge data. */
  readonly mayHaveData: boolean
}

/** Contents that are not pruned, oldest first. */
export async function listUnprunedContents(
  db: Queries,
  before: number,
  after: ContentPlace,
  limit: number,
): Promise<OldContent[]> {
  const rows = await db
    .selectFrom('message_contents')
    .select(['id', 'created_at'])
    .select(e => [
      e.or([e('raw_size', 'is not', null), e('attachments', 'is not', null)]).as('may_have_parts'),
      e('merging', 'is not', null).as('may_have_data'),
    ])
    .where('pruned_at', 'is', null)
    .where('created_at', '<', before)
    .where('created_at', '>=', after.createdAt)
    .where(e => e(e.refTuple('created_at', 'id'), '>', e.tuple(after.createdAt, after.id)))
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    id: row.id,
    createdAt: row.created_at,
    mayHaveParts: Boolean(row.may_have_parts),
    mayHaveData: Boolean(row.may_have_data),
  }))
}

export interface CheckedMessages {
  readonly count: number
  readonly last: string
  /** None is queued, and none was accepted or ended after the given moment. */
  readonly areDone: boolean
}

/** Checks the next messages of a content. @param after id of the last one checked; empty at first */
export async function checkMessagesOf(
  db: Queries,
  contentId: string,
  before: number,
  after: string,
  limit: number,
): Promise<CheckedMessages> {
  const { rows } = await sql<{ id: string; is_busy: number }>`
    select id,
      case when created_at >= ${before} or delivered_at >= ${before} or bounced_at >= ${before}
        or exists (select 1 from queue where queue.message_id = messages.id) then 1 else 0 end as is_busy
    from messages where content_id = ${contentId} and id > ${after}
    order by id limit ${limit}`.execute(db)
  return {
    count: rows.length,
    last: rows.at(-1)?.id ?? after,
    areDone: rows.every(row => row.is_busy === 0),
  }
}

/** Deletes up to `limit` parts. @returns how many */
export async function deletePartsOf(db: Queries, contentId: string, limit: number): Promise<number> {
  const result = await sql`
    delete from message_parts where content_id = ${contentId} and part in (
      select part from message_parts where content_id = ${contentId} order by part limit ${limit}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Deletes merge data of the next messages of a content. @param after id of the last one; empty at first */
export async function clearMergeData(
  db: Queries,
  contentId: string,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('messages')
    .select(['id', 'merge_data'])
    .where('content_id', '=', contentId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  const filled = rows.filter(row => row.merge_data !== null).map(({ id }) => id)
  if (filled.length > 0)
    await db.updateTable('messages').set({ merge_data: null }).where('id', 'in', filled).execute()
  return rows.map(({ id }) => id)
}

/** Deletes the body and custom header fields; sender, recipients, subject and times are kept. @returns how many */
export async function clearContents(db: Queries, ids: readonly string[], now: number): Promise<number> {
  if (ids.length === 0) return 0
  const result = await db
    .updateTable('message_contents')
    .set({ html: null, text: null, raw: null, headers: null, merging: null, pruned_at: now })
    .where('id', 'in', ids)
    .where('pruned_at', 'is', null)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

export interface OldMessage {
  readonly id: string
  readonly contentId: string
  /** It must be kept for now. */
  readonly isBusy: boolean
}

/**
 * The next messages by age, including busy ones.
 *
 * Messages of campaigns are always busy: their unsubscribe addresses never expire and are verified against the message.
 *
 * @param after id of the last one seen; empty at first
 */
export async function listOldMessages(
  db: Queries,
  before: number,
  after: string,
  limit: number,
): Promise<OldMessage[]> {
  const { rows } = await sql<{ id: string; content_id: string; is_busy: number }>`
    select m.id, m.content_id,
      case when m.created_at >= ${before} or m.campaign_id is not null
        or m.delivered_at >= ${before} or m.bounced_at >= ${before} or m.complained_at >= ${before}
        or m.opened_at >= ${before} or m.clicked_at >= ${before}
        or c.pruned_at is null
        or exists (select 1 from queue where queue.message_id = m.id) then 1 else 0 end as is_busy
    from messages as m join message_contents as c on c.id = m.content_id
    where m.id > ${after} and m.id < ${firstIdAt(before)}
    order by m.id limit ${limit}`.execute(db)
  return rows.map(row => ({ id: row.id, contentId: row.content_id, isBusy: row.is_busy === 1 }))
}

/** Also deletes their attempts and contents without messages. @returns how many messages */
export async function deleteMessages(db: Queries, messages: readonly OldMessage[]): Promise<number> {
  if (messages.length === 0) return 0
  const ids = messages.map(({ id }) => id)
  const contentIds = [...new Set(messages.map(({ contentId }) => contentId))]
  const result = await db
    .deleteFrom('messages')
    .where('id', 'in', ids)
    .where(e =>
      e.not(e.exists(e.selectFrom('queue').select('message_id').whereRef('message_id', '=', 'messages.id'))),
    )
    .executeTakeFirst()
  await db
    .deleteFrom('message_contents')
    .where('id', 'in', contentIds)
    .where('pruned_at', 'is not', null)
    .where(e =>
      e.not(
        e.exists(e.selectFrom('messages').select('id').whereRef('content_id', '=', 'message_contents.id')),
      ),
    )
    .execute()
  return Number(result.numDeletedRows)
}
