/**
 * Manages operator accounts: create, grant roles, reset, remove. Operators of a workspace invite people instead (`invitations.ts`).
 *
 * Called by the admin API and `init`. Privileges (`privileges.ts`) are checked in the transaction of the change, which also records it. There
 * is always an owner of all workspaces once there was one.
 */
import { AppError } from '../../core/errors.js'
import { readOptionalName } from '../../core/names.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity, type Activity } from '../../events/activity-store.js'
import { requirePermission, type OperatorPrincipal } from '../../http/operator.js'
import { readAddress } from '../../mail/address.js'
import { findWorkspace } from '../workspace-store.js'
import { hashToken } from './access.js'
import type { AccountMailer } from './account-mail.js'
import type { AccountMailAllowance } from './account-mail-allowance.js'
import { cancelAccountMails } from './account-mail-store.js'
import { LINK_LIFETIME_MS, newLink } from './links.js'
import {
  deleteOperator,
  deleteRole,
  findOperator,
  insertOperator,
  listOperators,
  deletePasskeys,
  putRole,
  replaceRecoveryCodes,
  updateOperator,
  type Operator,
} from './operator-store.js'
import { deleteIdentities } from './identity-store.js'
import { ALL_WORKSPACES, type RoleGrant } from '../../http/roles.js'
import {
  isOfAppliance,
  ownerOf,
  recordedAt,
  requireMayGrant,
  requirePowerOver,
  visibleTo,
} from './privileges.js'
import { removeUnprovedAccess, widens } from './proof.js'
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

export type OperatorParts = Pick<Services, 'database' | 'clock' | 'random' | 'newId'>

export interface NewOperator {
  readonly email: string
  readonly name?: string
  readonly grant: RoleGrant
}

/** Sends links by mail. */
export interface LinkMail {
  readonly mailer: AccountMailer
  readonly allowance: AccountMailAllowance
}

/**
 * For operators of all workspaces.
 *
 * @returns the account, and the token of a one-time link with which its owner sets a password or passkey
 * @throws AppError validation_error (address), not_found (workspace), forbidden, duplicate
 */
export async function createOperator(
  parts: OperatorParts,
  wanted: NewOperator,
  kind: 'sign_in' | 'invitation',
  acting: OperatorPrincipal,
): Promise<{ operator: Operator; link: string }> {
  return create(parts, wanted, acting, (tx, { id }) => addLink(parts, tx, id, kind))
}

/**
 * Another link for an account that nobody has signed in to, instead of its first one.
 *
 * @returns its token; undefined if somebody has signed in, or the account is gone
 */
export async function renewFirstLink(parts: OperatorParts, id: string): Promise<string | undefined> {
  return parts.database.write(async tx => {
    const operator = await findOperator(tx.db, { id })
    if (operator?.lastSignInAt !== null) return undefined
    await deleteLinks(tx.db, id)
    return addLink(parts, tx, id, 'sign_in')
  })
}

/** As `createOperator`; only the mailbox gets the link. @throws AppError rate_limited as well */
export async function createOperatorByMail(
  parts: OperatorParts & LinkMail,
  wanted: NewOperator,
  acting: OperatorPrincipal,
): Promise<Operator> {
  requireMayGrant(acting, wanted.grant)
  const recipient = readEmail(wanted.email)
  await parts.allowance.take(acting, recipient, undefined)
  const { operator } = await create(parts, wanted, acting, (tx, { id }) =>
    parts.mailer.enqueue(tx, { kind: 'invitation', recipient, operatorId: id }),
  )
  return operator
}

async function create<Link>(
  parts: OperatorParts,
  { email, name, grant }: NewOperator,
  acting: OperatorPrincipal,
  addLinkTo: (tx: Tx, operator: Operator) => Promise<Link>,
): Promise<{ operator: Operator; link: Link }> {
  const operator: Operator = {
    id: parts.newId(),
    email: readEmail(email),
    name: readOptionalName(name ?? ''),
    passwordHash: null,
    totpSecret: null,
    totpStep: 0,
    createdAt: parts.clock.now(),
    lastSignInAt: null,
    provedAt: null,
    grants: [grant],
  }
  const link = await parts.database.write(async tx => {
    requireMayGrant(acting, grant)
    await requireWorkspace(tx.db, grant.workspaceId)
    if (!(await insertOperator(tx.db, operator)))
      throw new AppError('duplicate', `there is an operator ${operator.email} already`)
    await record(parts, tx, acting, 'operator.created', operator, { role: grant.role })
    return addLinkTo(tx, operator)
  })
  return { operator, link }
}

/** @returns in lower case @throws AppError validation_error */
export function readEmail(email: string): string {
  const read = readAddress(email, { allowSingleLabel: true })
  if ('fault' in read)
    throw new AppError('validation_error', `${email} is not an email address: it ${read.fault}`, {
      path: 'email',
    })
  return read.address.toLowerCase()
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

/**
 * A wider role for an account whose address was not proved removes everything that was set up in it, and therefore needs power over it.
 *
 * @throws AppError not_found, forbidden, conflict (the last owner)
 */
export async function setRole(
  parts: OperatorParts,
  id: string,
  grant: RoleGrant,
  acting: OperatorPrincipal,
): Promise<{ readonly operator: Operator; readonly isAccessRemoved: boolean }> {
  const { workspaceId, role } = grant
  return parts.database.write(async tx => {
    requireMayGrant(acting, grant)
    const before = await requireVisible(tx.db, acting, id)
    const previous = requireReplaceable(acting, before, workspaceId)
    await requireWorkspace(tx.db, workspaceId)
    let isAccessRemoved = false
    if (before.provedAt === null && widens(before.grants, grant)) {
      requirePowerOver(acting, before)
      isAccessRemoved = await removeUnprovedAccess(tx, before, { ...parts, actor: acting.actor })
    }
    await keepingOwner(tx.db, () => putRole(tx.db, id, grant))
    const operator = await requireOperator(tx.db, id)
    const details = { role, before: previous?.role ?? null }
    await record(parts, tx, acting, 'operator.role_set', operator, details, ownerOf({ workspaceId }))
    return { operator, isAccessRemoved }
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
    requirePermission(acting, 'operators:write', workspaceId)
    const before = await requireVisible(tx.db, acting, id)
    const previous = requireReplaceable(acting, before, workspaceId)
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
    await endAccess(parts, tx, id)
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
): Promise<{ operator: Operator; link: string }> {
  return reset(parts, id, acting, tx => addLink(parts, tx, id, 'reset'))
}

/** As `resetOperator`; only the mailbox gets the link. @throws AppError rate_limited as well */
export async function resetOperatorByMail(
  parts: OperatorParts & LinkMail,
  id: string,
  acting: OperatorPrincipal,
): Promise<Operator> {
  const { email: recipient, grants } = await requireSubject(parts.database.reader, acting, id)
  const workspaceId = isOfAppliance(acting) ? undefined : grants[0]?.workspaceId
  await parts.allowance.take(acting, recipient, workspaceId)
  const { operator } = await reset(parts, id, acting, tx =>
    parts.mailer.enqueue(tx, { kind: 'reset', recipient, operatorId: id }),
  )
  return operator
}

/** The address counts as unproved again, since the new link may be handed over. */
async function reset<Link>(
  parts: OperatorParts,
  id: string,
  acting: OperatorPrincipal,
  addLinkTo: (tx: Tx) => Promise<Link>,
): Promise<{ operator: Operator; link: Link }> {
  const nothing = { passwordHash: null, totpSecret: null, totpStep: 0, provedAt: null }
  return parts.database.write(async tx => {
    const operator = await requireSubject(tx.db, acting, id)
    await endAccess(parts, tx, id)
    await updateOperator(tx.db, id, nothing)
    await replaceRecoveryCodes(tx.db, id, [])
    await deleteIdentities(tx.db, id)
    await deletePasskeys(tx.db, id)
    await record(parts, tx, acting, 'operator.reset', operator)
    const link = await addLinkTo(tx)
    return { operator: { ...operator, ...nothing }, link }
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
  await recordActivity(tx, { workspaceId, actor }, clock.now(), { action, subject, details })
}

/** The operator that an act on the whole account is about. @throws AppError not_found, forbidden */
async function requireSubject(db: Queries, acting: OperatorPrincipal, id: string): Promise<Operator> {
  const operator = await requireOperator(db, id)
  requirePowerOver(acting, operator)
  return operator
}

/** @throws AppError not_found, also if `acting` may not see the operator */
async function requireVisible(db: Queries, acting: OperatorPrincipal, id: string): Promise<Operator> {
  const operator = await requireOperator(db, id)
  if (!visibleTo(acting, operator)) throw new AppError('not_found', `no operator ${id}`)
  return operator
}

/** @returns the role that the operator has in the workspace @throws AppError not_found, forbidden */
function requireReplaceable(
  acting: OperatorPrincipal,
  { grants }: Operator,
  workspaceId: string,
): RoleGrant | undefined {
  const previous = grants.find(grant => grant.workspaceId === workspaceId)
  if (previous) requireMayGrant(acting, previous)
  return previous
}

async function endAccess({ clock }: Pick<OperatorParts, 'clock'>, tx: Tx, id: string): Promise<void> {
  await deleteSessions(tx.db, id)
  await deleteTokens(tx.db, id)
  await deleteLinks(tx.db, id)
  await cancelAccountMails(tx.db, { operatorId: id }, clock.now())
}

/** @returns its token, of which only the hash is stored */
async function addLink(
  { clock, random }: Pick<OperatorParts, 'clock' | 'random'>,
  tx: Tx,
  operatorId: string,
  kind: LinkKind,
): Promise<string> {
  const token = newLink(random)
  const expiresAt = clock.now() + LINK_LIFETIME_MS[kind]
  await insertLink(tx.db, { tokenHash: hashToken(token), operatorId, kind, expiresAt, isMailed: false })
  return token
}

async function requireOperator(db: Queries, id: string): Promise<Operator> {
  const operator = await findOperator(db, { id })
  if (!operator) throw new AppError('not_found', `no operator ${id}`)
  return operator
}

export async function requireWorkspace(db: Queries, id: string): Promise<void> {
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
