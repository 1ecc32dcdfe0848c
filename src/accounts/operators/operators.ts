/**
 * Manages operator accounts: create, invite, grant roles, reset, remove.
 *
 * Called by the admin API and `init`. Privileges (`privileges.ts`) are checked in the transaction of the change, which also records it. There
 * is always an owner of all workspaces once there was one.
 */
import { AppError } from '../../core/errors.js'
import { readOptionalName } from '../../core/names.js'
import type { NewId } from '../../core/ids.js'
import type { Database, Queries, Tx } from '../../db/database.js'
import { recordActivity, type Activity } from '../../events/activity-store.js'
import { requirePermission, type OperatorPrincipal } from '../../http/operator.js'
import { readAddress } from '../../mail/address.js'
import type { Clock } from '../../world/time/clock.js'
import type { Random } from '../../world/random.js'
import { findWorkspace } from '../workspace-store.js'
import { hashToken } from './access.js'
import {
  deleteOperator,
  deleteRole,
  findOperator,
  insertOperator,
  listOperators,
  listPasskeys,
  deletePasskey,
  putRole,
  replaceRecoveryCodes,
  updateOperator,
  type Operator,
} from './operator-store.js'
import { deleteIdentities } from './oidc/identity-store.js'
import { ALL_WORKSPACES, type RoleGrant } from '../../http/roles.js'
import { ownerOf, recordedAt, requireMayGrant, requirePowerOver, visibleTo } from './privileges.js'
import {
  deleteLinks,
  deleteSession,
  deleteSessions,
  deleteToken,
  deleteTokens,
  insertLink,
  listSessions,
  listTokens,
  type LinkKind,
  type OperatorToken,
  type Session,
} from './session-store.js'

export interface OperatorParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly newId: NewId
}

export interface NewOperator {
  readonly email: string
  readonly name?: string
  readonly grant: RoleGrant
}

const LINK_LIFETIME_MS: Readonly<Record<LinkKind, number>> = {
  sign_in: 86_400_000,
  invitation: 7 * 86_400_000,
  reset: 3_600_000,
}

/** Delivers a link in the transaction that creates it, e.g. by mail. */
export type SendLink = (tx: Tx, operator: Operator, link: string) => Promise<void>

/**
 * @returns the account, and the token of a one-time link with which its owner sets a password or passkey
 * @throws AppError validation_error (address), not_found (workspace), forbidden, duplicate
 */
export async function createOperator(
  parts: OperatorParts,
  { email, name, grant }: NewOperator,
  kind: 'sign_in' | 'invitation',
  acting: OperatorPrincipal,
  sendLink?: SendLink,
): Promise<{ operator: Operator; link: string }> {
  const read = readAddress(email.trim(), { allowSingleLabel: true })
  if ('fault' in read)
    throw new AppError('validation_error', `${email} is not an email address: it ${read.fault}`, {
      path: 'email',
    })
  const operator: Operator = {
    id: parts.newId(),
    email: read.address.toLowerCase(),
    name: readOptionalName(name ?? ''),
    passwordHash: null,
    totpSecret: null,
    totpStep: 0,
    createdAt: parts.clock.now(),
    lastSignInAt: null,
    grants: [grant],
  }
  const link = await parts.database.write(async tx => {
    requireMayGrant(acting, grant)
    await requireWorkspace(tx.db, grant.workspaceId)
    if (!(await insertOperator(tx.db, operator)))
      throw new AppError('duplicate', `there is an operator ${operator.email} already`)
    await record(parts, tx, acting, 'operator.created', operator, { role: grant.role })
    const token = await addLink(parts, tx, operator.id, kind)
    await sendLink?.(tx, operator, token)
    return token
  })
  return { operator, link }
}

/** @throws AppError not_found */
export async function getOperator(
  { database }: Pick<OperatorParts, 'database'>,
  acting: OperatorPrincipal,
  id: string,
): Promise<Operator> {
  const operator = visibleTo(acting, await requireOperator(database.reader, id))
  if (!operator) throw new AppError('not_found', `no operator ${id}`)
  return operator
}

export async function renameOperator(
  parts: OperatorParts,
  id: string,
  asked: string,
  acting: OperatorPrincipal,
): Promise<Operator> {
  const name = readOptionalName(asked)
  return parts.database.write(async tx => {
    const operator = await requireSubject(tx.db, acting, id)
    await updateOperator(tx.db, id, { name })
    await record(parts, tx, acting, 'operator.renamed', operator, { name })
    return { ...operator, name }
  })
}

/** @throws AppError not_found, forbidden, conflict (the last owner) */
export async function setRole(
  parts: OperatorParts,
  id: string,
  grant: RoleGrant,
  acting: OperatorPrincipal,
): Promise<Operator> {
  const { workspaceId, role } = grant
  return parts.database.write(async tx => {
    requireMayGrant(acting, grant)
    const previous = await requireReplaceable(tx.db, acting, id, workspaceId)
    await requireWorkspace(tx.db, workspaceId)
    await keepingOwner(tx.db, () => putRole(tx.db, id, grant))
    const operator = await requireOperator(tx.db, id)
    const details = { role, before: previous?.role ?? null }
    await record(parts, tx, acting, 'operator.role_set', operator, details, ownerOf({ workspaceId }))
    return operator
  })
}

/** @throws AppError not_found, forbidden, conflict (the last owner) */
export async function removeRole(
  parts: OperatorParts,
  id: string,
  workspaceId: string,
  acting: OperatorPrincipal,
): Promise<Operator> {
  return parts.database.write(async tx => {
    const previous = await requireReplaceable(tx.db, acting, id, workspaceId)
    await keepingOwner(tx.db, async () => {
      if (!(await deleteRole(tx.db, id, workspaceId)))
        throw new AppError('not_found', 'the operator has no role there')
    })
    const operator = await requireOperator(tx.db, id)
    const details = { before: previous?.role ?? null }
    await record(parts, tx, acting, 'operator.role_removed', operator, details, ownerOf({ workspaceId }))
    return operator
  })
}

/** Deletes the account and ends its sessions and tokens. @throws AppError not_found, forbidden, conflict (the last owner) */
export async function removeOperator(
  parts: OperatorParts,
  id: string,
  acting: OperatorPrincipal,
): Promise<Operator> {
  return parts.database.write(async tx => {
    const operator = await requireSubject(tx.db, acting, id)
    await endAccess(tx.db, id)
    await keepingOwner(tx.db, () => deleteOperator(tx.db, id))
    await record(parts, tx, acting, 'operator.removed', operator)
    return operator
  })
}

/**
 * Deletes everything the operator signs in with, and ends sessions and tokens at once.
 *
 * @returns the token of a one-time link that allows to start again
 * @throws AppError not_found, forbidden
 */
export async function resetOperator(
  parts: OperatorParts,
  id: string,
  acting: OperatorPrincipal,
  sendLink?: SendLink,
): Promise<{ operator: Operator; link: string }> {
  return parts.database.write(async tx => {
    const operator = await requireSubject(tx.db, acting, id)
    await endAccess(tx.db, id)
    await updateOperator(tx.db, id, { passwordHash: null, totpSecret: null, totpStep: 0 })
    await replaceRecoveryCodes(tx.db, id, [])
    await deleteIdentities(tx.db, id)
    for (const passkey of await listPasskeys(tx.db, id)) await deletePasskey(tx.db, id, passkey.id)
    await record(parts, tx, acting, 'operator.reset', operator)
    const link = await addLink(parts, tx, id, 'reset')
    await sendLink?.(tx, operator, link)
    return { operator: { ...operator, passwordHash: null, totpSecret: null, totpStep: 0 }, link }
  })
}

/** @throws AppError not_found, forbidden */
export async function listSessionsOf(
  { database }: Pick<OperatorParts, 'database'>,
  id: string,
  acting: OperatorPrincipal,
): Promise<Session[]> {
  await requireSubject(database.reader, acting, id)
  return listSessions(database.reader, id)
}

/** @param sessionId default: all of the operator's @throws AppError not_found, forbidden */
export async function endSessions(
  parts: OperatorParts,
  id: string,
  sessionId: string | undefined,
  acting: OperatorPrincipal,
): Promise<void> {
  await parts.database.write(async tx => {
    const operator = await requireSubject(tx.db, acting, id)
    if (sessionId === undefined) await deleteSessions(tx.db, id)
    else if (!(await deleteSession(tx.db, id, sessionId)))
      throw new AppError('not_found', `no session ${sessionId}`)
    await record(parts, tx, acting, 'operator.signed_out', operator)
  })
}

/** @throws AppError not_found, forbidden */
export async function listTokensOf(
  { database }: Pick<OperatorParts, 'database'>,
  id: string,
  acting: OperatorPrincipal,
): Promise<OperatorToken[]> {
  await requireSubject(database.reader, acting, id)
  return listTokens(database.reader, id)
}

/** @throws AppError not_found, forbidden */
export async function revokeTokenOf(
  parts: OperatorParts,
  id: string,
  tokenId: string,
  acting: OperatorPrincipal,
): Promise<void> {
  await parts.database.write(async tx => {
    const operator = await requireSubject(tx.db, acting, id)
    if (!(await deleteToken(tx.db, id, tokenId))) throw new AppError('not_found', `no token ${tokenId}`)
    await record(parts, tx, acting, 'operator_token.revoked', operator)
  })
}

async function record(
  { clock }: Pick<OperatorParts, 'clock'>,
  tx: Tx,
  { actor }: OperatorPrincipal,
  action: Activity['action'],
  operator: Operator,
  details: NonNullable<Activity['details']> = {},
  workspaceId = recordedAt(operator),
): Promise<void> {
  const subject = operator.email
  await recordActivity(tx, { workspaceId, actor, action, subject, details, createdAt: clock.now() })
}

/** The operator that an act on the whole account is about. @throws AppError not_found, forbidden */
async function requireSubject(db: Queries, acting: OperatorPrincipal, id: string): Promise<Operator> {
  const operator = await requireOperator(db, id)
  requirePowerOver(acting, operator)
  return operator
}

/** @returns the role that the operator has in the workspace @throws AppError not_found, forbidden */
async function requireReplaceable(
  db: Queries,
  acting: OperatorPrincipal,
  id: string,
  workspaceId: string,
): Promise<RoleGrant | undefined> {
  requirePermission(acting, 'operators:write', workspaceId)
  const { grants } = await requireOperator(db, id)
  const previous = grants.find(grant => grant.workspaceId === workspaceId)
  if (previous) requireMayGrant(acting, previous)
  return previous
}

async function endAccess(db: Queries, id: string): Promise<void> {
  await deleteSessions(db, id)
  await deleteTokens(db, id)
  await deleteLinks(db, id)
}

/** @returns its token, of which only the hash is stored */
async function addLink(
  { clock, random }: Pick<OperatorParts, 'clock' | 'random'>,
  tx: Tx,
  operatorId: string,
  kind: LinkKind,
): Promise<string> {
  const token = random.bytes(32).toString('base64url')
  const expiresAt = clock.now() + LINK_LIFETIME_MS[kind]
  await insertLink(tx.db, { tokenHash: hashToken(token), operatorId, kind, expiresAt })
  return token
}

async function requireOperator(db: Queries, id: string): Promise<Operator> {
  const operator = await findOperator(db, { id })
  if (!operator) throw new AppError('not_found', `no operator ${id}`)
  return operator
}

async function requireWorkspace(db: Queries, id: string): Promise<void> {
  if (id !== ALL_WORKSPACES && !(await findWorkspace(db, id)))
    throw new AppError('not_found', `no workspace ${id}`)
}

/** Fails the transaction if the change takes the last owner of all workspaces away. */
async function keepingOwner(db: Queries, change: () => Promise<void>): Promise<void> {
  const hadOwner = await hasOwner(db)
  await change()
  if (hadOwner && !(await hasOwner(db)))
    throw new AppError(
      'conflict',
      'this is the last owner of all workspaces; make another operator owner first',
    )
}

async function hasOwner(db: Queries): Promise<boolean> {
  return (await listOperators(db)).some(({ grants }) =>
    grants.some(({ workspaceId, role }) => workspaceId === ALL_WORKSPACES && role === 'owner'),
  )
}
