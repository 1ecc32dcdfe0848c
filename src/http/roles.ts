/**
 * Roles of operators: named sets of permissions, held in one workspace or in all.
 *
 * The permissions of API keys decide about a workspace's REST API; the further ones here decide about the admin API. Pure.
 */
import { PERMISSIONS, type Permission } from './principal.js'

/** Permissions that no API key can have. */
export const ADMIN_PERMISSIONS = [
  /** Settings of a workspace. */
  'workspace:read',
  'workspace:write',
  'keys:read',
  'keys:write',
  'queue:read',
  'queue:write',
  'inbound:read',
  'inbound:write',
  'operators:read',
  'operators:write',
  /** The appliance: configuration, health, jobs, backups, certificates, login locks, captured mail. */
  'system:read',
  'system:write',
] as const

export type AdminPermission = (typeof ADMIN_PERMISSIONS)[number]
export type OperatorPermission = Permission | AdminPermission

/** From most to least powerful: each has all permissions of the next one, but `marketer`, who also writes. */
export const ROLES = ['owner', 'operator', 'marketer', 'viewer'] as const
export type Role = (typeof ROLES)[number]

const ALL: readonly OperatorPermission[] = [...PERMISSIONS, ...ADMIN_PERMISSIONS]

const MARKETER: readonly OperatorPermission[] = [
  ...(
    [
      'contacts',
      'lists',
      'segments',
      'tags',
      'automations',
      'campaigns',
      'templates',
      'suppressions',
      'conversions',
    ] as const
  ).flatMap(resource => [`${resource}:read`, `${resource}:write`] as const),
  'campaigns:send',
  'email:send',
  'email:read',
  'bounces:read',
  'analytics:read',
  'activity:read',
  'domains:read',
  'workspace:read',
]

const VIEWER = ALL.filter(name => name.endsWith(':read') && name !== 'keys:read' && name !== 'operators:read')

const PERMISSIONS_OF: Readonly<Record<Role, ReadonlySet<OperatorPermission>>> = {
  owner: new Set(ALL),
  operator: new Set(ALL.filter(name => name !== 'operators:write')),
  marketer: new Set(MARKETER),
  viewer: new Set(VIEWER),
}

/** Workspace id of a role held in all workspaces; such a role also covers the appliance itself. */
export const ALL_WORKSPACES = '*'

export interface RoleGrant {
  /** Or `ALL_WORKSPACES`. */
  readonly workspaceId: string
  readonly role: Role
}

export function rolePermissions(role: Role): ReadonlySet<OperatorPermission> {
  return PERMISSIONS_OF[role]
}

/**
 * Whether the grants allow it. A role in a workspace adds to one in all workspaces, it never takes away.
 *
 * @param workspaceId `ALL_WORKSPACES` for what concerns the appliance or several workspaces
 */
export function isGranted(
  grants: readonly RoleGrant[],
  permission: OperatorPermission,
  workspaceId: string,
): boolean {
  return grants.some(
    grant =>
      (grant.workspaceId === ALL_WORKSPACES || grant.workspaceId === workspaceId) &&
      PERMISSIONS_OF[grant.role].has(permission),
  )
}
