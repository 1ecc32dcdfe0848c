/** SQL of challenges, which passkeys sign. Each is taken once, before its expiry. */
import type { Queries } from '../../db/database.js'

interface ChallengeRow {
  challenge: string
  kind: ChallengeKind
  /** Who registers a passkey; null for sign-ins. */
  operator_id: string | null
  expires_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    operator_challenges: ChallengeRow
  }
}

export type ChallengeKind = 'register' | 'sign_in'

export interface Challenge {
  readonly challenge: string
  readonly kind: ChallengeKind
  readonly operatorId: string | null
  readonly expiresAt: number
}

export async function insertChallenge(db: Queries, challenge: Challenge): Promise<void> {
  await db
    .insertInto('operator_challenges')
    .values({
      challenge: challenge.challenge,
      kind: challenge.kind,
      operator_id: challenge.operatorId,
      expires_at: challenge.expiresAt,
    })
    .execute()
}

/** Deletes the challenge. @returns undefined if it is unknown, used, expired or of another kind */
export async function takeChallenge(
  db: Queries,
  kind: ChallengeKind,
  challenge: string,
  now: number,
): Promise<Challenge | undefined> {
  const row = await db
    .deleteFrom('operator_challenges')
    .where('challenge', '=', challenge)
    .where('kind', '=', kind)
    .returningAll()
    .executeTakeFirst()
  if (!row || row.expires_at <= now) return undefined
  return { challenge, kind, operatorId: row.operator_id, expiresAt: row.expires_at }
}

/** @returns how many, at most `limit` */
export async function deleteChallengesBefore(db: Queries, now: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operator_challenges')
    .where('challenge', 'in', query =>
      query.selectFrom('operator_challenges').select('challenge').where('expires_at', '<', now).limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
