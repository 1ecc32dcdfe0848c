/** Permissions that an operator's roles grant. Pure. */
import type { components } from '#api/admin'

export type Role = NonNullable<components['schemas']['Me']['limited_to']>

export interface Grant {
  readonly role: Role
  /** Null: in all workspaces. */
  readonly workspace_id: string | null
}

const EVERYBODY: readonly Role[] = ['owner', 'operator', 'marketer', 'viewer']

/** Whether one of these roles is held in the workspace, or in all. @param workspaceId undefined: in all workspaces */
export function isGranted(held: readonly Grant[], roles: readonly Role[], workspaceId?: string): boolean {
  return held.some(
    ({ role, workspace_id: where }) =>
      roles.includes(role) && (where === null || (workspaceId !== undefined && where === workspaceId)),
  )
}

/** Whether one of these roles is held anywhere. */
export function isGrantedSomewhere(held: readonly Grant[], roles: readonly Role[]): boolean {
  return held.some(({ role }) => roles.includes(role))
}

/** Screens of the appliance need a role in all workspaces, others one in any. */
export function maySee(
  held: readonly Grant[],
  {
    roles = EVERYBODY,
    isAppliance = false,
  }: { readonly roles?: readonly Role[]; readonly isAppliance?: boolean },
): boolean {
  return isAppliance ? isGranted(held, roles) : isGrantedSomewhere(held, roles)
}
