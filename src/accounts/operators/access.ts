/**
 * Authenticates operators' requests by session or token, and lets them use the REST API of their workspaces.
 *
 * Session tokens and operator tokens have at least 238 random bits, so a plain SHA-256 is stored. Every request reads the database: a
 * removed operator, role, session or token stops working at once.
 */
import { hash as digest } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { mayOperate, type OperatorAccess, type OperatorPrincipal } from '../../http/operator.js'
import { PERMISSIONS, type Principal } from '../../http/principal.js'
import { findWorkspace, sandboxIdOf } from '../workspace-store.js'
import { findOperator, type Operator } from './operator-store.js'
import {
  findSession,
  findSessionById,
  findToken,
  findTokenById,
  noteSeen,
  noteTokenUsed,
  type Session,
} from './session-store.js'

/** Lifetimes of sessions, ms. */
export const SESSION_LIFETIME = {
  idleMs: 12 * 3_600_000,
  maxMs: 7 * 86_400_000,
  /** How long a session waits for its second factor. */
  pendingMs: 5 * 60_000,
} as const

/** `last used` is accurate to this, so that reads do not write. */
const SEEN_EVERY_MS = 60_000

export type AccessParts = Pick<Services, 'database' | 'clock'>

export function openOperatorAccess(parts: AccessParts): OperatorAccess {
  return {
    bySession: token => authenticateSession(parts, token),
    byToken: token => authenticateToken(parts, token),
    inWorkspace: (operator, workspaceId, isSandbox) =>
      actingIn(parts.database, operator, workspaceId, isSandbox),
  }
}

export function hashToken(token: string): string {
  return digest('sha256', token, 'hex')
}

/** @throws AppError unauthorized */
export async function authenticateSession(
  { database, clock }: AccessParts,
  token: string,
): Promise<OperatorPrincipal> {
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
    actor: { type: 'operator', id: operator.id, name: operator.email },
  }
}

/** @param token `pa_...` @throws AppError unauthorized */
export async function authenticateToken(
  { database, clock }: AccessParts,
  token: string,
): Promise<OperatorPrincipal> {
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
    actor: { type: 'operator_token', id: found.id, name: `${operator.email} (${found.name})` },
  }
}

/**
 * Reads the operator of a request that is still being answered again. Counts as no use of the session, which would never end otherwise.
 *
 * @returns undefined if session, token or operator have ended
 */
export async function recheckOperator(
  { database: { reader }, clock }: AccessParts,
  operator: OperatorPrincipal,
): Promise<OperatorPrincipal | undefined> {
  const { kind, id } = operator.credential
  if (kind === 'shell') return operator
  const now = clock.now()
  if (kind === 'session') {
    const session = await findSessionById(reader, id)
    if (!session || session.isPending || isExpired(session, now)) return undefined
  } else {
    const token = await findTokenById(reader, id)
    if (!token || (token.expiresAt !== null && token.expiresAt <= now)) return undefined
  }
  const found = await findOperator(reader, { id: operator.id })
  return found && { ...operator, ...identityOf(found) }
}

async function actingIn(
  { reader }: Database,
  operator: OperatorPrincipal,
  workspaceId: string,
  isSandbox: boolean,
): Promise<Principal> {
  const permissions = PERMISSIONS.filter(permission => mayOperate(operator, permission, workspaceId))
  const workspace = permissions.length === 0 ? undefined : await findWorkspace(reader, workspaceId)
  if (!workspace) throw new AppError('workspace_not_found', `no workspace ${workspaceId}`)
  return {
    keyId: `operator:${operator.id}`,
    keyName: operator.email || operator.name,
    actor: operator.actor,
    workspaceId: isSandbox ? sandboxIdOf(workspace.id) : workspace.id,
    liveWorkspaceId: workspace.id,
    keyType: 'custom',
    permissions,
    isSandbox,
    // The gate counts requests of operators itself.
    rateLimit: 0,
    emailRateLimit: 0,
  }
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
