/**
 * Invitations to a workspace, which the holder of the address accepts.
 *
 * Operators of a workspace give nobody a role directly: the address may be that of an account they know nothing about, and must learn nothing
 * about. Whether there is one or not, they see the same invitation, and only the mailbox gets its link. Opening it creates the account, or
 * adds the role to the account of the same address, once its holder has signed in.
 */
import { AppError } from '../../core/errors.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity } from '../../events/activity-store.js'
import { mayOperate, type OperatorPrincipal } from '../../http/operator.js'
import type { Role } from '../../http/roles.js'
import { findWorkspace } from '../workspace-store.js'
import { hashToken } from './access.js'
import { cancelAccountMails } from './account-mail-store.js'
import {
  deleteInvitation,
  findInvitation,
  findInvitationByLink,
  listInvitations,
  putInvitation,
  type Invitation,
} from './invitation-store.js'
import { INVITATION_LIFETIME_MS } from './links.js'
import { findOperator, insertOperator, putRole, updateOperator, type Operator } from './operator-store.js'
import { readEmail, requireWorkspace, type LinkMail, type NewOperator } from './operators.js'
import { mayGrant, requireMayGrant, visibleTo } from './privileges.js'
import { removeUnprovedAccess, widens } from './proof.js'
import { findLink, type LinkKind } from './session-store.js'

export type InvitationParts = Pick<Services, 'database' | 'clock' | 'newId'>

/** @throws AppError validation_error, not_found (workspace), forbidden, duplicate (an operator they see), rate_limited */
export async function invite(
  parts: InvitationParts & LinkMail,
  { email: written, name = '', grant }: NewOperator,
  acting: OperatorPrincipal,
): Promise<Invitation> {
  requireMayGrant(acting, grant)
  const email = readEmail(written)
  await parts.allowance.take(acting, email, grant.workspaceId)
  const createdAt = parts.clock.now()
  return parts.database.write(async tx => {
    await requireWorkspace(tx.db, grant.workspaceId)
    const existing = await findOperator(tx.db, { email })
    if (existing && visibleTo(acting, existing))
      throw new AppError('duplicate', `there is an operator ${email} already; grant them the role`)
    const wanted = {
      id: parts.newId(),
      email,
      name,
      grant,
      invitedBy: acting.id,
      createdAt,
      expiresAt: createdAt + INVITATION_LIFETIME_MS,
    }
    const id = await putInvitation(tx.db, wanted)
    await cancelAccountMails(tx.db, { invitationId: id }, createdAt)
    await parts.mailer.enqueue(tx, { kind: 'join', recipient: email, invitationId: id })
    await record(tx, 'operator.invited', { ...wanted, id }, acting.actor, createdAt)
    return { ...wanted, id }
  })
}

/** Those of workspaces whose operators the caller may list. */
export async function listVisibleInvitations(
  { database, clock }: Pick<InvitationParts, 'database' | 'clock'>,
  acting: OperatorPrincipal,
): Promise<Invitation[]> {
  const all = await listInvitations(database.reader, clock.now())
  return all.filter(one => mayOperate(acting, 'operators:read', one.grant.workspaceId))
}

/** @returns undefined if it does not exist or the caller may not see it */
export async function findVisibleInvitation(
  { database }: Pick<InvitationParts, 'database'>,
  acting: OperatorPrincipal,
  id: string,
): Promise<Invitation | undefined> {
  const found = await findInvitation(database.reader, id)
  return found && mayOperate(acting, 'operators:read', found.grant.workspaceId) ? found : undefined
}

/** @throws AppError not_found, forbidden */
export async function withdrawInvitation(
  { database, clock }: Pick<InvitationParts, 'database' | 'clock'>,
  id: string,
  acting: OperatorPrincipal,
): Promise<void> {
  await database.write(async tx => {
    const found = await findInvitation(tx.db, id)
    if (!found) throw new AppError('not_found', `no invitation ${id}`)
    requireMayGrant(acting, found.grant)
    await deleteInvitation(tx.db, id)
    await cancelAccountMails(tx.db, { invitationId: id }, clock.now())
    await record(tx, 'operator.invitation_withdrawn', found, acting.actor, clock.now())
  })
}

/** A link's account and role, shown before it is opened. */
export interface LinkPreview {
  readonly kind: LinkKind | 'join'
  readonly email: string
  /** Of an invitation to a workspace. */
  readonly workspace: string | null
  readonly role: Role | null
  /** The account exists: the link adds a role to it, and signs nobody in. */
  readonly needsSignIn: boolean
  readonly expiresAt: number
}

/** Uses nothing up. @throws AppError unauthorized */
export async function previewLink(
  { database: { reader }, clock }: Pick<InvitationParts, 'database' | 'clock'>,
  token: string,
): Promise<LinkPreview> {
  const [tokenHash, now] = [hashToken(token), clock.now()]
  const link = await findLink(reader, tokenHash, now)
  const operator = link && (await findOperator(reader, { id: link.operatorId }))
  if (link && operator) {
    const { kind, expiresAt } = link
    return { kind, email: operator.email, workspace: null, role: null, needsSignIn: false, expiresAt }
  }
  const invitation = await findInvitationByLink(reader, tokenHash, now)
  const workspace = invitation && (await findWorkspace(reader, invitation.grant.workspaceId))
  if (!invitation || !workspace) throw noSuchLink()
  const { email, grant, expiresAt } = invitation
  const needsSignIn = (await findOperator(reader, { email })) !== undefined
  return { kind: 'join', email, workspace: workspace.name, role: grant.role, needsSignIn, expiresAt }
}

/**
 * Creates the account that the invitation is for. Its address is proved: the link was mailed there.
 *
 * @returns undefined if there is no such invitation
 * @throws AppError conflict if the account exists; the invitation stays
 */
export async function openInvitedAccount(
  { clock, newId }: Pick<InvitationParts, 'clock' | 'newId'>,
  tx: Tx,
  tokenHash: string,
  peer: string,
): Promise<Operator | undefined> {
  const now = clock.now()
  const invitation = await findInvitationByLink(tx.db, tokenHash, now)
  if (!invitation) return undefined
  if (!(await isStillValid(tx.db, invitation)))
    throw new AppError('unauthorized', 'this invitation is no longer valid; ask for a new one')
  const { id: invitationId, email, name, grant } = invitation
  const id = newId()
  if (!(await insertOperator(tx.db, { id, email, name, createdAt: now, provedAt: now, grants: [grant] })))
    throw new AppError(
      'conflict',
      `there is an account ${email} already: sign in with it, then open the link again`,
    )
  await deleteInvitation(tx.db, invitationId)
  const operator = await findOperator(tx.db, { id })
  await record(tx, 'operator.created', invitation, { type: 'operator', id, name: email, peer }, now)
  return operator
}

/**
 * Adds the role to the account of a person who is signed in. If the address was not proved before, only the current session stays of what was
 * set up in the account.
 *
 * @throws AppError not_found (link), forbidden (another account's)
 */
export async function acceptInvitation(
  { database, clock }: Pick<InvitationParts, 'database' | 'clock'>,
  acting: OperatorPrincipal,
  token: string,
): Promise<{ readonly isAccessRemoved: boolean }> {
  const now = clock.now()
  return database.write(async tx => {
    const invitation = await findInvitationByLink(tx.db, hashToken(token), now)
    // Not `unauthorized`: the session is valid.
    if (!invitation || !(await isStillValid(tx.db, invitation)))
      throw new AppError(
        'not_found',
        'this invitation was used already, or is no longer valid; ask for a new one',
      )
    const operator = await findOperator(tx.db, { id: acting.id })
    if (operator?.email !== invitation.email)
      throw new AppError('forbidden', `the invitation is for ${invitation.email}: sign in with that account`)
    const { grant } = invitation
    let isAccessRemoved = false
    if (operator.provedAt === null) {
      const kept = { clock, actor: acting.actor, keptSession: acting.credential.id }
      isAccessRemoved = await removeUnprovedAccess(tx, operator, kept)
      await updateOperator(tx.db, operator.id, { provedAt: now })
    }
    await deleteInvitation(tx.db, invitation.id)
    // A role that they have there by now may be the wider one.
    if (widens(operator.grants, grant)) {
      await putRole(tx.db, operator.id, grant)
      await record(tx, 'operator.role_set', invitation, acting.actor, now)
    }
    return { isAccessRemoved }
  })
}

/** The inviting operator must still be able to grant the role. */
async function isStillValid(db: Queries, { grant, invitedBy }: Invitation): Promise<boolean> {
  const inviter = await findOperator(db, { id: invitedBy })
  const workspace = await findWorkspace(db, grant.workspaceId)
  return inviter !== undefined && workspace !== undefined && mayGrant(inviter, grant)
}

export function noSuchLink(): AppError {
  return new AppError('unauthorized', 'this link was used already or has expired; ask for a new one')
}

async function record(
  tx: Tx,
  action: `operator.${'invited' | 'invitation_withdrawn' | 'created' | 'role_set'}`,
  { email: subject, grant: { workspaceId, role }, invitedBy }: Invitation,
  actor: OperatorPrincipal['actor'],
  createdAt: number,
): Promise<void> {
  const details = { role, invited_by: invitedBy }
  await recordActivity(tx, { workspaceId, actor }, createdAt, { action, subject, details })
}
