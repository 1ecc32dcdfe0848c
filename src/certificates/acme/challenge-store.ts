/** SQL of the challenges of orders in progress: any node that shares the database answers them. */
import type { Queries } from '../../db/database.js'

export type ChallengeKind = 'http' | 'dns'

interface ChallengeRow {
  token: string
  kind: ChallengeKind
  content: string
  expires_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    acme_challenges: ChallengeRow
  }
}

export interface Challenge {
  /** RFC 8555 §8: base64url. */
  readonly token: string
  readonly kind: ChallengeKind
  /** The file's content, or the value of the TXT record. */
  readonly content: string
  /** Ms since epoch UTC. */
  readonly expiresAt: number
}

/** More than a certificate has names. */
const MAX_PENDING = 200

/** Oldest first. */
export async function listChallenges(db: Queries, now: number): Promise<Omit<Challenge, 'expiresAt'>[]> {
  return db
    .selectFrom('acme_challenges')
    .select(['token', 'kind', 'content'])
    .where('expires_at', '>', now)
    .orderBy('expires_at')
    .limit(MAX_PENDING)
    .execute()
}

/** Also deletes expired ones, which a node left that ended during its order. */
export async function insertChallenge(db: Queries, challenge: Challenge, now: number): Promise<void> {
  const { token, kind, content, expiresAt } = challenge
  await db.deleteFrom('acme_challenges').where('expires_at', '<=', now).execute()
  await db
    .insertInto('acme_challenges')
    .values({ token, kind, content, expires_at: expiresAt })
    .onConflict(conflict => conflict.column('token').doUpdateSet({ kind, content, expires_at: expiresAt }))
    .execute()
}

export async function deleteChallenges(db: Queries, tokens: readonly string[]): Promise<void> {
  if (tokens.length === 0) return
  await db.deleteFrom('acme_challenges').where('token', 'in', tokens).execute()
}
