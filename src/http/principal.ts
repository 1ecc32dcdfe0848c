/** The caller of a REST API request: a key, or an operator acting in a workspace. Created by `accounts/`, read by routes. */
import type { Actor } from '../core/actor.js'

/** Permissions of keys, as `resource:action`. */
export const PERMISSIONS = [
  'email:send',
  'email:read',
  'smtp:send',
  'campaigns:send',
  'bounces:read',
  'analytics:read',
  'activity:read',
  'tracking:write',
  ...(
    [
      'contacts',
      'lists',
      'segments',
      'tags',
      'automations',
      'campaigns',
      'templates',
      'domains',
      'suppressions',
      'conversions',
      'webhooks',
    ] as const
  ).flatMap(resource => [`${resource}:read`, `${resource}:write`] as const),
] as const

export type Permission = (typeof PERMISSIONS)[number]

export const KEY_TYPES = ['full_access', 'sending_access', 'custom'] as const

export interface Principal {
  /** `operator:<id>` for an operator. */
  readonly keyId: string
  readonly keyName: string
  readonly actor: Actor
  /**
   * Owner of the data the key reads and writes. A sandbox key has its workspace's sandbox, a separate data set. Routes see no other
   * owner, so they cannot mix the two.
   */
  readonly workspaceId: string
  /** Workspace of the key. A sandbox uses it only for settings, and for verified domains in a send. */
  readonly liveWorkspaceId: string
  readonly keyType: (typeof KEY_TYPES)[number]
  /** `*` grants all. */
  readonly permissions: readonly (Permission | '*')[]
  /** A sandbox key: it never causes anything to leave the machine. */
  readonly isSandbox: boolean
  /** Requests per minute; 0 = unlimited. */
  readonly rateLimit: number
  /** Recipients per minute; 0 = unlimited. */
  readonly emailRateLimit: number
}

export function mayDo(principal: Principal, permission: Permission): boolean {
  return principal.permissions.includes('*') || principal.permissions.includes(permission)
}

/** Authenticates a bearer token. @throws AppError unauthorized, workspace_not_found */
export type Authenticate = (token: string) => Promise<Principal>
