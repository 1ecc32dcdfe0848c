/** SQL for the scheduled mail that was accepted with one API key. */
import { must } from '../core/must.js'
import type { Queries } from '../db/database.js'

export interface KeyOfMail {
  readonly id: string
  readonly workspaceId: string
  /** Its mail belongs to the workspace's sandbox. */
  readonly isSandbox: boolean
}

export interface ScheduledMessage {
  readonly id: string
  readonly contentId: string
  readonly scheduledAt: number
}

function scheduledOf(db: Queries, { id, workspaceId, isSandbox }: KeyOfMail) {
  return db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .$if(!isSandbox, query => query.where('messages.workspace_id', '=', workspaceId))
    .$if(isSandbox, query =>
      query.where('messages.workspace_id', 'in', sandbox =>
        sandbox
          .selectFrom('sandboxes')
          .select('sandboxes.id')
          .where('sandboxes.workspace_id', '=', workspaceId),
      ),
    )
    .where('messages.status', '=', 'scheduled')
    .where('message_contents.key_id', '=', id)
}

export async function countScheduledOfKey(db: Queries, key: KeyOfMail): Promise<number> {
  const row = await scheduledOf(db, key)
    .select(query => query.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return row.count
}

export async function listScheduledOfKey(
  db: Queries,
  key: KeyOfMail,
  limit: number,
): Promise<ScheduledMessage[]> {
  const rows = await scheduledOf(db, key)
    .select(['messages.id', 'messages.content_id', 'message_contents.scheduled_at'])
    .orderBy('messages.id')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    id: row.id,
    contentId: row.content_id,
    scheduledAt: must(row.scheduled_at, 'scheduled_at'),
  }))
}
