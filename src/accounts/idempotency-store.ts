/**
 * SQL of stored responses to requests with an Idempotency-Key, kept for an hour.
 *
 * Written by handlers in the transaction that does the work, or by `http/idempotency.ts` around them, which also reads them. Keys and
 * bodies are stored as digests only. Each insert deletes a few expired rows; a job deletes the rest.
 */
import { AppError } from '../core/errors.js'
import { given } from '../core/given.js'
import type { Database, Queries } from '../db/database.js'
import type { IdempotencyClaim, KeptAnswer, KeptAnswers } from '../http/idempotency.js'

import { SealError, type SecretBox } from './secret-box.js'

interface KeptAnswerRow {
  /** Id of the claim. */
  id: string
  body_hash: string
  /** `RESERVED` until the response is stored. */
  status: number
  /** JSON: `data` of the response; sealed if it contains a secret. */
  value: string
  /** Version of the answer's resource. */
  etag: string | null
  created_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    kept_answers: KeptAnswerRow
  }
}

const KEPT_MS = 3_600_000
/** Expired rows deleted per insert: more than one, so that the table shrinks after a busy hour. */
const PRUNED_AT_ONCE = 8

/** An answer and the claim it is kept for. */
export interface Kept {
  readonly claim: IdempotencyClaim
  readonly answer: KeptAnswer
}

/** Call this in the transaction that does the work. @param claim undefined: store nothing */
export async function keepAnswer(
  db: Queries,
  claim: IdempotencyClaim | undefined,
  answer: KeptAnswer,
): Promise<void> {
  if (claim) await keepAnswers(db, [{ claim, answer }])
}

/** All or nothing; the caller must roll back if this throws. @throws AppError conflict: a key was used by another request */
export async function keepAnswers(db: Queries, kept: readonly Kept[]): Promise<void> {
  if (kept.length === 0) return
  const earliest = Math.min(...kept.map(({ claim }) => claim.madeAt))
  await deleteExpiredAnswers(db, earliest, PRUNED_AT_ONCE * kept.length)
  const rows = kept.map(({ claim, answer }) => ({
    id: claim.id,
    body_hash: claim.bodyHash,
    status: answer.status,
    value: JSON.stringify(answer.value),
    etag: answer.etag ?? null,
    created_at: claim.madeAt,
  }))
  const { numInsertedOrUpdatedRows = 0n } = await db
    .insertInto('kept_answers')
    .values(rows)
    // An expired row that has not been pruned yet.
    .onConflict(conflict =>
      conflict
        .column('id')
        .doUpdateSet(eb => ({
          body_hash: eb.ref('excluded.body_hash'),
          status: eb.ref('excluded.status'),
          value: eb.ref('excluded.value'),
          etag: eb.ref('excluded.etag'),
          created_at: eb.ref('excluded.created_at'),
        }))
        .where('kept_answers.created_at', '<=', earliest - KEPT_MS),
    )
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows < kept.length)
    throw new AppError(
      'conflict',
      'another request with this Idempotency-Key came first; repeat this one for its answer',
    )
}

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

const RESERVED = 0

export function keptAnswers(database: Database, box: SecretBox): KeptAnswers {
  return {
    async find({ id, madeAt }) {
      const row = await database.reader
        .selectFrom('kept_answers')
        .selectAll()
        .where('id', '=', id)
        .where('created_at', '>', madeAt - KEPT_MS)
        .executeTakeFirst()
      return row && { bodyHash: row.body_hash, answer: readAnswer(row, box) }
    },
    reserve: claim => database.write(tx => keepAnswer(tx.db, claim, { status: RESERVED, value: null })),
    release: ({ id }) =>
      database.write(async tx => {
        await tx.db.deleteFrom('kept_answers').where('id', '=', id).where('status', '=', RESERVED).execute()
      }),
    keep: ({ id, bodyHash }, { status, value, etag = null }, isSecret) =>
      database.write(async tx => {
        const text = JSON.stringify(value)
        await tx.db
          .updateTable('kept_answers')
          .set({ status, value: isSecret ? box.seal(text, placeOf(id)) : text, etag, body_hash: bodyHash })
          .where('id', '=', id)
          .execute()
      }),
  }
}

function placeOf(id: string): string {
  return `kept_answers/value/${id}`
}

/** A response sealed with another key counts as lost. */
function readAnswer({ id, status, value, etag }: KeptAnswerRow, box: SecretBox): KeptAnswer | undefined {
  if (status === RESERVED) return undefined
  try {
    const opened: unknown = JSON.parse(box.open(value, placeOf(id)))
    return { status, value: opened, ...given({ etag: etag ?? undefined }) }
  } catch (error) {
    if (error instanceof SealError) return undefined
    throw error
  }
}
