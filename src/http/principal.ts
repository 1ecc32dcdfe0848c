/**
 * Who is calling: what the API knows of a request's key. `accounts/` makes it from a bearer token; routes read it.
 */

/** What a key may be allowed to do, as `resource:action`. */
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
  readonly keyId: string
  readonly keyName: string
  /**
   * Whose data the key reads and writes: of a live key its workspace, of a sandbox key that workspace's sandbox, which is a
   * data set of its own. Routes know no other owner, so that none can mix the two up.
   */
  readonly workspaceId: string
  /** The workspace that the key was made for. Only for what a sandbox reads of it: settings, and verified domains in a send. */
  readonly liveWorkspaceId: string
  readonly keyType: (typeof KEY_TYPES)[number]
  /** `*` stands for all. */
  readonly permissions: readonly (Permission | '*')[]
  /** A sandbox key: nothing it causes leaves the machine. */
  readonly isSandbox: boolean
  /** Requests per minute; 0 = unlimited. */
  readonly rateLimit: number
  /** Recipients per minute; 0 = unlimited. */
  readonly emailRateLimit: number
}

export function mayDo(principal: Principal, permission: Permission): boolean {
  return principal.permissions.includes('*') || principal.permissions.includes(permission)
}

/** Finds who a bearer token belongs to. @throws AppError unauthorized, workspace_not_found */
export type Authenticate = (token: string) => Promise<Principal>
