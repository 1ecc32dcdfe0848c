/** SQL of challenges: what passkeys sign, and the states of sign-ins by OpenID Connect. Each is taken once, before its expiry. */
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'

interface ChallengeRow {
  challenge: string
  kind: ChallengeKind
  /** Who registers a passkey or confirms; null for sign-ins. */
  operator_id: string | null
  browser_hash: string | null
  sealed: string | null
  expires_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    operator_challenges: ChallengeRow
  }
}

export type ChallengeKind = 'register' | 'sign_in' | 'oidc'

export interface Challenge {
  /** Of OpenID Connect, the hash of the state. */
  readonly challenge: string
  readonly kind: ChallengeKind
  readonly operatorId: string | null
  /** Hash of the cookie that binds it to a browser; passkeys have none. */
  readonly browserHash?: string
  /** Opened with `challengePlace`. */
  readonly sealed?: string
  readonly expiresAt: number
}

export async function insertChallenge(db: Queries, challenge: Challenge): Promise<void> {
  await db
    .insertInto('operator_challenges')
    .values({
      challenge: challenge.challenge,
      kind: challenge.kind,
      operator_id: challenge.operatorId,
      browser_hash: challenge.browserHash ?? null,
      sealed: challenge.sealed ?? null,
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
  const { operator_id: operatorId, browser_hash: browserHash, sealed, expires_at: expiresAt } = row
  return {
    challenge,
    kind,
    operatorId,
    expiresAt,
    ...given({ browserHash: browserHash ?? undefined, sealed: sealed ?? undefined }),
  }
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

/** Where `sealed` is stored, as `SecretBox` binds it. */
export function challengePlace(challenge: string): string {
  return `operator_challenges/sealed/${challenge}`
}
