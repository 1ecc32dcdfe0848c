/**
 * SQL of due times that a clock set back has left too far ahead.
 *
 * Used by `due-times.ts`. A page is a walk along `queue_due` from where the last one ended; held rows are passed over: who
 * releases them makes them due.
 */
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'

/** What says how far ahead a row may be due. */
export interface Waiting {
  readonly messageId: string
  readonly attempts: number
  readonly nextAttemptAt: number
  readonly enqueuedAt: number
  /** Whether it waits for the time that its sender named. */
  readonly isScheduled: boolean
}

export interface WaitingPage {
  readonly lane: string
  /** Rows due after this moment, or at it with a greater id. */
  readonly after: { readonly dueAt: number; readonly messageId: string }
  readonly limit: number
}

/** Of one lane, soonest first; neither held nor in hand. */
export async function selectWaiting(db: Queries, { lane, after, limit }: WaitingPage): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('queue')
    .innerJoin('messages', 'messages.id', 'queue.message_id')
    .select(['message_id', 'attempts', 'next_attempt_at', 'enqueued_at', 'messages.status'])
    .where('lane', '=', lane)
    .where('is_held', '=', 0)
    .where('claimed_by', 'is', null)
    .where('next_attempt_at', '>=', after.dueAt)
    .where(e =>
      e.or([
        e('next_attempt_at', '>', after.dueAt),
        e.and([e('next_attempt_at', '=', after.dueAt), e('message_id', '>', after.messageId)]),
      ]),
    )
    .orderBy('next_attempt_at')
    .orderBy('message_id')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    messageId: row.message_id,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    enqueuedAt: row.enqueued_at,
    isScheduled: row.status === 'scheduled',
  }))
}

/** Those that nobody has taken in hand meanwhile. */
export async function correctDueTime(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set({ next_attempt_at: dueAt })
      .where('message_id', 'in', list)
      .where('claimed_by', 'is', null)
      .execute()
}
