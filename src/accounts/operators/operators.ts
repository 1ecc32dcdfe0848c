/**
 * Manages operator accounts: create, invite, grant roles, reset, remove.
 *
 * Called by `postroad operator` and the admin API. There is always an owner of all workspaces once there was one.
 */
import { AppError } from '../../core/errors.js'
import type { NewId } from '../../core/ids.js'
import type { Database, Queries, Tx } from '../../db/database.js'
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
import { ALL_WORKSPACES, type RoleGrant } from '../../http/roles.js'
import { deleteLinks, deleteSessions, deleteTokens, insertLink, type LinkKind } from './session-store.js'

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

/**
 * @returns the account, and the token of a one-time link with which its owner sets a password or passkey
 * @throws AppError validation_error (address), not_found (workspace), duplicate
 */
export async function createOperator(
  parts: OperatorParts,
  { email, name, grant }: NewOperator,
  kind: 'sign_in' | 'invitation',
): Promise<{ operator: Operator; link: string }> {
  const read = readAddress(email.trim(), { allowSingleLabel: true })
  if ('fault' in read)
    throw new AppError('validation_error', `${email} is not an email address: it ${read.fault}`, {
      path: 'email',
    })
  const operator: Operator = {
    id: parts.newId(),
    email: read.address.toLowerCase(),
    name: name ?? '',
    passwordHash: null,
    totpSecret: null,
    totpStep: 0,
    createdAt: parts.clock.now(),
    lastSignInAt: null,
    grants: [grant],
  }
  const link = await parts.database.write(async tx => {
    await requireWorkspace(tx.db, grant.workspaceId)
    if (!(await insertOperator(tx.db, operator)))
      throw new AppError('duplicate', `there is an operator ${operator.email} already`)
    return addLink(parts, tx, operator.id, kind)
  })
  return { operator, link }
}

/** @throws AppError not_found, conflict (the last owner) */
export async function setRole(
  { database }: Pick<OperatorParts, 'database'>,
  id: string,
  grant: RoleGrant,
): Promise<Operator> {
  return database.write(async tx => {
    await requireOperator(tx.db, id)
    await requireWorkspace(tx.db, grant.workspaceId)
    await keepingOwner(tx.db, () => putRole(tx.db, id, grant))
    return requireOperator(tx.db, id)
  })
}

/** @throws AppError not_found, conflict (the last owner) */
export async function removeRole(
  { database }: Pick<OperatorParts, 'database'>,
  id: string,
  workspaceId: string,
): Promise<Operator> {
  return database.write(async tx => {
    await requireOperator(tx.db, id)
    await keepingOwner(tx.db, async () => {
      if (!(await deleteRole(tx.db, id, workspaceId)))
        throw new AppError('not_found', 'the operator has no role there')
    })
    return requireOperator(tx.db, id)
  })
}

/** Deletes the account and ends its sessions and tokens. @throws AppError not_found, conflict (the last owner) */
export async function removeOperator(
  { database }: Pick<OperatorParts, 'database'>,
  id: string,
): Promise<Operator> {
  return database.write(async tx => {
    const operator = await requireOperator(tx.db, id)
    await endAccess(tx.db, id)
    await keepingOwner(tx.db, () => deleteOperator(tx.db, id))
    return operator
  })
}

/**
 * Deletes everything the operator signs in with, and ends sessions and tokens at once.
 *
 * @returns the token of a one-time link that allows to start again
 * @throws AppError not_found
 */
export async function resetOperator(
  parts: OperatorParts,
  id: string,
): Promise<{ operator: Operator; link: string }> {
  return parts.database.write(async tx => {
    const operator = await requireOperator(tx.db, id)
    await endAccess(tx.db, id)
    await updateOperator(tx.db, id, { passwordHash: null, totpSecret: null, totpStep: 0 })
    await replaceRecoveryCodes(tx.db, id, [])
    for (const passkey of await listPasskeys(tx.db, id)) await deletePasskey(tx.db, id, passkey.id)
    return { operator, link: await addLink(parts, tx, id, 'reset') }
  })
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
