/**
 * SQL of what an operator does with the queue by hand: look, hold, release, retry, delete.
 *
 * Used by the command line, beside a running server as well: the rows are the truth, and the server notices that
 * another process has changed them. What is under way at that moment ends as it ends.
 */
import { sql, type ExpressionBuilder } from 'kysely'
import type { Queries, Tx } from '../db/database.js'
import { flag, type Tables } from '../db/tables.js'
import { appendEvents } from '../events/store.js'
import { markFailed } from './message-status-store.js'
import { entryFromRow, type QueueEntry } from './queue-store.js'

/** Which entries: one message, one destination, or everything. */
export type QueueSelection =
  { readonly messageId: string } | { readonly destination: string } | { readonly isAll: true }

export interface QueueListEntry extends QueueEntry {
  readonly recipient: string
  /** What the last attempt met; null before the first. */
  readonly lastSummary: string | null
}

/** Longest waiting first. */
export async function listEntries(
  db: Queries,
  selection: QueueSelection,
  limit: number,
): Promise<QueueListEntry[]> {
  const rows = await db
    .selectFrom('queue')
    .innerJoin('messages', 'messages.id', 'queue.message_id')
    .selectAll('queue')
    .select('messages.recipient')
    .select(e =>
      e
        .selectFrom('attempts')
        .select('summary')
        .whereRef('attempts.message_id', '=', 'queue.message_id')
        .orderBy('seq', 'desc')
        .limit(1)
        .as('last_summary'),
    )
    .where(e => isSelected(e, selection))
    .orderBy('queue.message_id')
    .limit(limit)
    .execute()
  return rows.map(row => ({ ...entryFromRow(row), recipient: row.recipient, lastSummary: row.last_summary }))
}

/** One line of the summary: how many messages of a destination have waited how long. */
export interface SummaryRow {
  readonly destination: string
  readonly held: number
  /** Counts by age, in the order of the bounds asked for, and one more for what is older than all of them. */
  readonly byAge: readonly number[]
  readonly total: number
}

/** The destinations with most mail first. @param ageBoundsMs ascending */
export async function summarize(
  db: Queries,
  now: number,
  ageBoundsMs: readonly number[],
  limit: number,
): Promise<SummaryRow[]> {
  const bounds = [...ageBoundsMs, Infinity]
  const rows = await db
    .selectFrom('queue')
    .select('destination')
    .select(e => [
      e.fn.countAll<number>().as('total'),
      e.fn.sum<number>('is_held').as('held'),
      ...bounds.map((bound, index) =>
        sql<number>`sum(case when enqueued_at > ${bound === Infinity ? 0 : now - bound} and enqueued_at <= ${now - (bounds[index - 1] ?? -1)} then 1 else 0 end)`.as(
          `age${index}`,
        ),
      ),
    ])
    .groupBy('destination')
    .orderBy('total', 'desc')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    destination: row.destination,
    held: row.held,
    total: row.total,
    byAge: bounds.map((_, index) => Number((row as unknown as Record<string, number>)[`age${index}`])),
  }))
}

/** @returns how many were changed */
export async function setHeld(db: Queries, selection: QueueSelection, isHeld: boolean): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ is_held: flag(isHeld) })
    .where(e => isSelected(e, selection))
    .where('is_held', '=', flag(!isHeld))
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Makes them due now. What is under way is left alone: its next time is set by its outcome. */
export async function retryNow(db: Queries, selection: QueueSelection, now: number): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ next_attempt_at: now })
    .where(e => isSelected(e, selection))
    .where('next_attempt_at', '>', now)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Entries taken out by one statement. */
const DELETE_BATCH = 500

/** Takes entries out of the queue; their messages read `failed`. @returns how many, at most a batch: ask until 0 */
export async function deleteEntries(tx: Tx, selection: QueueSelection, now: number): Promise<number> {
  const entries = await listEntries(tx.db, selection, DELETE_BATCH)
  const ids = entries.map(entry => entry.messageId)
  if (ids.length === 0) return 0
  await tx.db.deleteFrom('queue').where('message_id', 'in', ids).execute()
  await markFailed(tx.db, ids)
  await appendEvents(
    tx,
    entries.map(entry => ({
      kind: 'email.failed',
      workspaceId: entry.workspaceId,
      messageId: entry.messageId,
      isSandbox: false,
      occurredAt: now,
      payload: { to: entry.recipient, reason: 'deleted from the queue by the operator' },
    })),
  )
  return ids.length
}

function isSelected(e: ExpressionBuilder<Tables, 'queue'>, selection: QueueSelection) {
  if ('messageId' in selection) return e('queue.message_id', '=', selection.messageId)
  if ('destination' in selection) return e('queue.destination', '=', selection.destination)
  return e.lit(true)
}
