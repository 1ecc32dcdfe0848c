/** Privileges of operators over other operators: nobody grants, takes away or takes over more than they hold themselves. Pure. */
import { AppError } from '../../core/errors.js'
import { APPLIANCE } from '../../core/owner.js'
import { mayOperate, requirePermission, type OperatorPrincipal } from '../../http/operator.js'
import { ALL_WORKSPACES, rolePermissions, type Role, type RoleGrant } from '../../http/roles.js'
import type { Operator } from './operator-store.js'

/** Whether the caller manages all operators: creates accounts and hands out links. Others invite people to their workspaces. */
export function isOfAppliance(acting: OperatorPrincipal): boolean {
  return mayOperate(acting, 'operators:write', ALL_WORKSPACES)
}

/** For granting the role as well as for taking it away. @throws AppError not_found, forbidden */
export function requireMayGrant(acting: OperatorPrincipal, { workspaceId, role }: RoleGrant): void {
  requirePermission(acting, 'operators:write', workspaceId)
  const missing = [...rolePermissions(role)].find(permission => !mayOperate(acting, permission, workspaceId))
  if (missing !== undefined)
    throw new AppError('forbidden', `the role ${role} includes ${missing}, which you do not have there`)
}

/**
 * For what affects the whole account: name, reset, removal, sessions, tokens.
 *
 * @throws AppError not_found, forbidden if the operator has a role that `acting` could not grant
 */
export function requirePowerOver(acting: OperatorPrincipal, operator: Operator): void {
  if (!visibleTo(acting, operator)) throw new AppError('not_found', `no operator ${operator.id}`)
  const { grants } = operator
  const isWithin = grants.length > 0 ? grants.every(grant => mayGrant(acting, grant)) : isOfAppliance(acting)
  if (!isWithin)
    throw new AppError('forbidden', `${operator.email} also has roles that you could not grant; ask an owner`)
}

/**
 * The operator as `acting` may see them: with the roles in workspaces whose operators they may list. Operators of all workspaces are the
 * appliance's.
 *
 * @returns undefined if that leaves none
 */
export function visibleTo(acting: OperatorPrincipal, operator: Operator): Operator | undefined {
  if (mayOperate(acting, 'operators:read', ALL_WORKSPACES)) return operator
  const grants = operator.grants.filter(
    ({ workspaceId }) => workspaceId !== ALL_WORKSPACES && mayOperate(acting, 'operators:read', workspaceId),
  )
  return grants.length > 0 ? { ...operator, grants } : undefined
}

/** Whether every permission of `role` is one of `limit`; no limit includes every role. */
export function isWithinRole(role: Role | null, limit: Role | null): boolean {
  if (limit === null) return true
  const allowed = rolePermissions(limit)
  return role !== null && [...rolePermissions(role)].every(permission => allowed.has(permission))
}

/** Where an act on the account is recorded: in its only workspace, otherwise for the whole appliance. */
export function recordedAt({ grants }: Pick<Operator, 'grants'>): string {
  const [first, ...others] = grants
  return first && others.length === 0 ? ownerOf(first) : APPLIANCE
}

/** Where an act on the role is recorded. */
export function ownerOf({ workspaceId }: Pick<RoleGrant, 'workspaceId'>): string {
  return workspaceId === ALL_WORKSPACES ? APPLIANCE : workspaceId
}

export function mayGrant(
  acting: Pick<OperatorPrincipal, 'grants' | 'limitedTo'>,
  { workspaceId, role }: RoleGrant,
): boolean {
  return (
    mayOperate(acting, 'operators:write', workspaceId) &&
    [...rolePermissions(role)].every(permission => mayOperate(acting, permission, workspaceId))
  )
}
