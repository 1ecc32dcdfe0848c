/**
 * SQL of kept answers: what a request with an Idempotency-Key was answered, for an hour.
 *
 * Written by handlers in the transaction that does the work, read by `http/idempotency.ts`. Keys and bodies are kept as
 * digests only. What has expired goes a few rows at a time, with whatever is kept next, and the rest with a job.
 */
import type { Queries } from '../db/database.js'
import type { FindAnswer, IdempotencyClaim, KeptAnswer } from '../http/idempotency.js'

interface KeptAnswerRow {
  /** The claim's. */
  id: string
  body_hash: string
  status: number
  /** JSON: `data` of the answer. */
  value: string
  created_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    kept_answers: KeptAnswerRow
  }
}

const KEPT_MS = 3_600_000
/** Rows that go with each that comes: more than one, so that the table shrinks after a busy hour. */
const PRUNED_AT_ONCE = 8

/**
 * Call it in the transaction that does what the answer tells of.
 *
 * @param claim undefined: there is nothing to keep
 */
export async function keepAnswer(
  db: Queries,
  claim: IdempotencyClaim | undefined,
  { status, value }: KeptAnswer,
): Promise<void> {
  if (!claim) return
  await deleteExpiredAnswers(db, claim.madeAt, PRUNED_AT_ONCE)
  const row = { body_hash: claim.bodyHash, status, value: JSON.stringify(value), created_at: claim.madeAt }
  await db
    .insertInto('kept_answers')
    .values({ id: claim.id, ...row })
    // One that has expired and was not pruned yet.
    .onConflict(conflict => conflict.column('id').doUpdateSet(row))
    .execute()
}

/** @returns how many, at most `limit` */
export async function deleteExpiredAnswers(db: Queries, now: number, limit: number): Promise<number> {
  const result = await db
    .deleteFrom('kept_answers')
    .where('id', 'in', query =>
      query
        .selectFrom('kept_answers')
        .select('id')
        .where('created_at', '<=', now - KEPT_MS)
        .orderBy('created_at')
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

export function answerFinder(reader: Queries): FindAnswer {
  return async ({ id, madeAt }) => {
    const row = await reader
      .selectFrom('kept_answers')
      .selectAll()
      .where('id', '=', id)
      .where('created_at', '>', madeAt - KEPT_MS)
      .executeTakeFirst()
    return row && { status: row.status, value: JSON.parse(row.value) as unknown, bodyHash: row.body_hash }
  }
}
