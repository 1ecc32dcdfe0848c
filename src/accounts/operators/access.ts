/**
 * Authenticates operators' requests by session or token, and holds the rules of both.
 *
 * Session tokens and operator tokens have at least 238 random bits, so a plain SHA-256 is stored. Every request reads the database: a
 * removed operator, role, session or token stops working at once.
 */
import { hash as digest } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import { findOperator, type Operator } from './operator-store.js'
import { isGranted, rolePermissions, type OperatorPermission, type RoleGrant } from './roles.js'
import { findSession, findToken, noteSeen, noteTokenUsed, type Session } from './session-store.js'

/** Lifetimes of sessions, ms. */
export const SESSION_LIFETIME = {
  idleMs: 12 * 3_600_000,
  maxMs: 7 * 86_400_000,
  /** How long a session waits for its second factor. */
  pendingMs: 5 * 60_000,
  /** How long after a sign-in sensitive actions are allowed. */
  confirmedMs: 15 * 60_000,
} as const

/** `last used` is accurate to this, so that reads do not write. */
const SEEN_EVERY_MS = 60_000

/** An authenticated operator. */
export interface ActingOperator {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly grants: readonly RoleGrant[]
  /** Limits the grants: a token with a role has no permission that the role lacks. */
  readonly limitedTo?: RoleGrant['role']
  readonly credential: { readonly kind: 'session' | 'token'; readonly id: string; readonly name?: string }
  /** When the session's operator last proved who they are; a token counts as proof. */
  readonly confirmedAt: number
}

export function mayOperate(
  operator: Pick<ActingOperator, 'grants' | 'limitedTo'>,
  permission: OperatorPermission,
  workspaceId: string,
): boolean {
  const { grants, limitedTo } = operator
  if (limitedTo !== undefined && !rolePermissions(limitedTo).has(permission)) return false
  return isGranted(grants, permission, workspaceId)
}

export interface AccessParts {
  readonly database: Database
  readonly clock: Clock
}

export function hashToken(token: string): string {
  return digest('sha256', token, 'hex')
}

/** @throws AppError unauthorized */
export async function authenticateSession(
  { database, clock }: AccessParts,
  token: string,
): Promise<ActingOperator> {
  const session = await findSession(database.reader, hashToken(token))
  const now = clock.now()
  if (!session || session.isPending || isExpired(session, now)) throw signedOut()
  const operator = await findOperator(database.reader, { id: session.operatorId })
  if (!operator) throw signedOut()
  if (now - session.seenAt >= SEEN_EVERY_MS) await database.write(tx => noteSeen(tx.db, session.id, now))
  return {
    ...identityOf(operator),
    credential: { kind: 'session', id: session.id },
    confirmedAt: session.confirmedAt,
  }
}

/** @param token `pa_...` @throws AppError unauthorized */
export async function authenticateToken(
  { database, clock }: AccessParts,
  token: string,
): Promise<ActingOperator> {
  const found = await findToken(database.reader, hashToken(token))
  const now = clock.now()
  if (!found || (found.expiresAt !== null && found.expiresAt <= now))
    throw new AppError('unauthorized', 'the operator token is unknown, revoked or expired')
  const operator = await findOperator(database.reader, { id: found.operatorId })
  if (!operator) throw new AppError('unauthorized', 'the operator of this token no longer exists')
  if (now - (found.lastUsedAt ?? 0) >= SEEN_EVERY_MS)
    await database.write(tx => noteTokenUsed(tx.db, found.id, now))
  return {
    ...identityOf(operator),
    ...(found.role === null ? {} : { limitedTo: found.role }),
    credential: { kind: 'token', id: found.id, name: found.name },
    confirmedAt: now,
  }
}

/** For sensitive actions. @throws AppError confirmation_required */
export function requireRecentSignIn({ confirmedAt }: ActingOperator, now: number): void {
  if (now - confirmedAt > SESSION_LIFETIME.confirmedMs)
    throw new AppError('confirmation_required', 'confirm your password or passkey first')
}

export function isExpired({ seenAt, createdAt }: Session, now: number): boolean {
  return now - seenAt >= SESSION_LIFETIME.idleMs || now - createdAt >= SESSION_LIFETIME.maxMs
}

function signedOut(): AppError {
  return new AppError('unauthorized', 'not signed in, or the session has ended')
}

function identityOf({ id, email, name, grants }: Operator) {
  return { id, email, name, grants }
}
