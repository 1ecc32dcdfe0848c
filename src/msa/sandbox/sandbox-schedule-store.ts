/** SQL for a sandbox's scheduled mail. Written by `simulator.ts` and `rest/email-routes.ts`, run by `sandbox-runner.ts`. */
import type { Queries } from '../../db/database.js'

interface SandboxScheduleRow {
  message_id: string
  due_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    sandbox_schedule: SandboxScheduleRow
  }
}

/** A sandbox message that is due. */
export interface DueMail {
  readonly messageId: string
  /** The sandbox's id. */
  readonly workspaceId: string
  /** The bare address. */
  readonly to: string
  /** Whether an unsubscribe suppresses it. */
  readonly isMarketing: boolean
}

/** Rows per statement. */
const ROWS_AT_ONCE = 500

export async function insertScheduled(db: Queries, messageIds: readonly string[], dueAt: number) {
  for (let at = 0; at < messageIds.length; at += ROWS_AT_ONCE) {
    const piece = messageIds.slice(at, at + ROWS_AT_ONCE)
    await db
      .insertInto('sandbox_schedule')
      .values(piece.map(id => ({ message_id: id, due_at: dueAt })))
      .execute()
  }
}

export async function deleteScheduled(db: Queries, messageIds: readonly string[]): Promise<void> {
  for (let at = 0; at < messageIds.length; at += ROWS_AT_ONCE)
    await db
      .deleteFrom('sandbox_schedule')
      .where('message_id', 'in', messageIds.slice(at, at + ROWS_AT_ONCE))
      .execute()
}

/** Earliest due first. */
export async function listDue(db: Queries, now: number, limit: number): Promise<DueMail[]> {
  const rows = await db
    .selectFrom('sandbox_schedule')
    .innerJoin('messages', 'messages.id', 'message_id')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .select(['message_id', 'messages.workspace_id', 'recipient', 'is_marketing'])
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .orderBy('message_id')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    messageId: row.message_id,
    workspaceId: row.workspace_id,
    to: row.recipient,
    isMarketing: row.is_marketing === 1,
  }))
}

/** @returns ms since epoch UTC; undefined if nothing is scheduled */
export async function nextDueAt(db: Queries): Promise<number | undefined> {
  const row = await db
    .selectFrom('sandbox_schedule')
    .select('due_at')
    .orderBy('due_at')
    .limit(1)
    .executeTakeFirst()
  return row?.due_at
}
