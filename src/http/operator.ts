/**
 * The caller of an admin API request: a person with roles, by session cookie or operator token, or a user of the shell.
 *
 * `accounts/operators/access.ts` implements `OperatorAccess`; the gate calls it.
 */
import type { Actor } from '../core/actor.js'
import { AppError } from '../core/errors.js'
import type { Holder } from '../core/holder.js'
import type { Principal } from './principal.js'
import {
  ALL_WORKSPACES,
  isGranted,
  rolePermissions,
  type OperatorPermission,
  type RoleGrant,
} from './roles.js'

export interface OperatorPrincipal {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly grants: readonly RoleGrant[]
  /** Limits the grants: a token with a role has no permission that the role lacks. */
  readonly limitedTo?: RoleGrant['role']
  readonly credential: {
    readonly kind: 'session' | 'token' | 'shell'
    readonly id: string
    readonly name?: string
  }
  /** When the session's operator last proved who they are, ms; a token counts as proof. */
  readonly confirmedAt: number
  readonly actor: Actor
}

/** Implemented by `accounts/operators/`. */
export interface OperatorAccess {
  /** @param token of the session cookie @throws AppError unauthorized */
  bySession(token: string): Promise<OperatorPrincipal>
  /** @param token `pa_...` @throws AppError unauthorized */
  byToken(token: string): Promise<OperatorPrincipal>
  /** The operator as a caller of the REST API in a workspace. @throws AppError workspace_not_found */
  inWorkspace(operator: OperatorPrincipal, workspaceId: string, isSandbox: boolean): Promise<Principal>
}

export const OPERATOR_TOKEN_PREFIX = 'pa_'

/** Longest time since a sign-in for sensitive actions, ms. */
export const CONFIRMED_MS = 15 * 60_000

/** Full control: a user who can open the control socket or the database has it anyway. @param user name of the system user */
export function shellOperator(user: string): OperatorPrincipal {
  return {
    id: 'shell',
    email: '',
    name: user,
    grants: [{ workspaceId: ALL_WORKSPACES, role: 'owner' }],
    credential: { kind: 'shell', id: user },
    confirmedAt: Number.MAX_SAFE_INTEGER,
    actor: { type: 'shell', name: user },
  }
}

/**
 * Whose share of what all share an operator uses. Operators of a workspace share with its keys, since its owner makes as many of both as
 * he likes; those with a role in all workspaces have a share that no tenant can use.
 *
 * @param workspaceId the workspace that the request names
 */
export function operatorHolder({ id, grants }: OperatorPrincipal, workspaceId: string | undefined): Holder {
  const isOfAll = grants.some(grant => grant.workspaceId === ALL_WORKSPACES)
  const owner = isOfAll ? ALL_WORKSPACES : (workspaceId ?? grants[0]?.workspaceId ?? 'no workspace')
  return { owner, key: `operator:${id}` }
}

export function mayOperate(
  { grants, limitedTo }: Pick<OperatorPrincipal, 'grants' | 'limitedTo'>,
  permission: OperatorPermission,
  workspaceId: string,
): boolean {
  if (limitedTo !== undefined && !rolePermissions(limitedTo).has(permission)) return false
  return isGranted(grants, permission, workspaceId)
}

/** Whether the operator has any role there; otherwise the workspace does not exist for them. */
export function hasRoleIn({ grants }: Pick<OperatorPrincipal, 'grants'>, workspaceId: string): boolean {
  return grants.some(grant => [ALL_WORKSPACES, workspaceId].includes(grant.workspaceId))
}

/**
 * Checks one workspace's permission, for routes whose record names the workspace.
 *
 * @throws AppError not_found without a role there, forbidden if the role lacks the permission
 */
export function requirePermission(
  operator: OperatorPrincipal,
  permission: OperatorPermission,
  workspaceId: string,
): void {
  if (mayOperate(operator, permission, workspaceId)) return
  if (workspaceId !== ALL_WORKSPACES && !hasRoleIn(operator, workspaceId))
    throw new AppError('not_found', 'no such resource')
  const isHeldSomewhere = operator.grants.some(grant => mayOperate(operator, permission, grant.workspaceId))
  throw new AppError(
    'forbidden',
    workspaceId === ALL_WORKSPACES && isHeldSomewhere
      ? `this concerns the whole appliance: it requires the permission ${permission} in all workspaces`
      : `your role lacks the permission ${permission}`,
  )
}

/** For sensitive actions. @throws AppError sign_in_required */
export function requireRecentSignIn({ confirmedAt }: OperatorPrincipal, now: number): void {
  if (now - confirmedAt > CONFIRMED_MS)
    throw new AppError('sign_in_required', 'confirm who you are, then repeat the request')
}
