/** The calling key and the activity log as resources: their routes, and retention of activities and stored responses. */
import Type from 'typebox'
import type { Database } from '../db/database.js'
import { deleteActivitiesBefore } from '../events/activity-store.js'
import { KEY_TYPES, PERMISSIONS } from '../http/principal.js'
import { route, type Route } from '../http/route.js'
import { resource } from '../resource/resource.js'
import { retentionRule } from '../resource/retention.js'
import { activityAdminRoutes, activityRoute } from './activity-routes.js'
import { deleteExpiredAnswers } from './idempotency-store.js'
import { keyRoutes, type KeyRouteParts } from './key-routes.js'
import { loginLockRoutes, type LoginLockParts } from './login-lock-routes.js'
import { workspaceRoutes } from './workspace-routes.js'
import type { WorkspaceParts } from './workspace-settings.js'

export const accounts = resource({
  chapters: {
    Workspace: 'The calling API key and the activity log.',
    Workspaces: 'Tenants of the appliance, and their settings.',
    Keys: 'API keys of workspaces.',
    'Login locks': 'Addresses and accounts locked after failed logins.',
  },
  open: (parts: WorkspaceParts & KeyRouteParts & LoginLockParts) => ({
    routes: [keyRoute(), ...workspaceRoutes(parts), ...keyRoutes(parts), ...loginLockRoutes(parts)],
    // Each row has its own expiry time.
    retention: [retentionRule({ what: 'answers of repeated requests', keep: 0 }, deleteExpiredAnswers)],
  }),
})

export interface ActivityParts {
  readonly database: Database
}

export const activity = resource({
  chapters: { Activity: 'Who changed what, on the appliance and in its workspaces.' },
  kept: { activity: { default: '365d', description: 'The activity log: who changed what in a workspace.' } },
  open: ({ database }: ActivityParts) => ({
    routes: [activityRoute(database.slowReader), ...activityAdminRoutes(database)],
    retention: [retentionRule({ what: 'activity', keep: ['activity'] }, deleteActivitiesBefore)],
  }),
})

const KeyPermissions = Type.Object(
  {
    name: Type.String(),
    type: Type.Enum([...KEY_TYPES]),
    permissions: Type.Array(Type.Enum(['*', ...PERMISSIONS]), { description: '`*` means all permissions.' }),
    rate_limit: Type.Integer({ description: 'Requests per minute; 0 = unlimited.' }),
    is_sandbox: Type.Boolean(),
  },
  { title: 'KeyPermissions' },
)

export function keyRoute(): Route {
  return route({
    method: 'GET',
    path: '/api-key/permissions',
    access: 'key',
    operationId: 'getKeyPermissions',
    chapter: 'Workspace',
    summary: 'Get the permissions of the API key.',
    response: KeyPermissions,
    handle: async ({ principal }) => ({
      name: principal.keyName,
      type: principal.keyType,
      permissions: [...principal.permissions],
      rate_limit: principal.rateLimit,
      is_sandbox: principal.isSandbox,
    }),
  })
}
