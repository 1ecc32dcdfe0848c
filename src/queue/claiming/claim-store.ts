/**
 * SQL of claims: which rows of the queue a server process has in hand, and what becomes of them when it is gone.
 *
 * Used by the claimer and at the start of the queue. A row in hand bears the name of the process's run (its incarnation), so
 * that nobody, this process included, takes it a second time before its outcome is on disk. The index `queue_claimed` holds
 * only rows in hand: what a crash has left is found at a cost that does not depend on the length of the queue.
 */
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'

interface Beginning extends Readonly<Record<string, unknown>> {
  readonly ids: readonly string[]
  readonly retryAt: number
  readonly incarnation: string
}

const countAttempt = statement((db, { ids, retryAt, incarnation }: Beginning) =>
  db
    .updateTable('queue')
    .set(row => ({
      attempts: row('attempts', '+', 1),
      next_attempt_at: retryAt,
      claimed_by: incarnation,
    }))
    .where('message_id', 'in', ids),
)

/** Counts the attempt, says who has it in hand, and when the next one would be, before anything is dialled. */
export async function beginAttempt(
  db: Queries,
  ids: readonly string[],
  retryAt: number,
  incarnation: string,
): Promise<void> {
  for (const list of inLists(ids)) await countAttempt(db, { ids: list, retryAt, incarnation })
}

/** Takes back `beginAttempt` for what was never dialled. */
export async function takeBackAttempt(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set(row => ({ attempts: row('attempts', '-', 1), next_attempt_at: dueAt, claimed_by: null }))
      .where('message_id', 'in', list)
      .execute()
}

/** No longer in hand, and due when `beginAttempt` said: what came of the attempt is not known. */
export async function letGo(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids))
    await db.updateTable('queue').set({ claimed_by: null }).where('message_id', 'in', list).execute()
}

/** A row that a process had in hand when it ended. */
export interface Orphan {
  readonly messageId: string
  /** Processes in a row that ended with it in hand, before this one. */
  readonly crashes: number
}

/** What processes that are gone had in hand. Bounded by what one process has under way. */
export async function findOrphans(db: Queries, incarnation: string): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('queue')
    .select(['message_id', 'crashes'])
    .where('claimed_by', 'is not', null)
    .where('claimed_by', '!=', incarnation)
    .orderBy('message_id')
    .execute()
  return rows.map(row => ({ messageId: row.message_id, crashes: row.crashes }))
}

/** One more crash, and due then. */
export async function adoptOrphans(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set(row => ({ crashes: row('crashes', '+', 1), next_attempt_at: dueAt, claimed_by: null }))
      .where('message_id', 'in', list)
      .execute()
}
