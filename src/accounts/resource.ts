/** The calling key and the activity log as resources: their routes, and retention of activities and stored responses. */
import Type, { type Static } from 'typebox'
import { ACTOR_TYPES } from '../core/actor.js'
import { isoTime } from '../core/moments.js'
import type { Database, Queries } from '../db/database.js'
import { deleteActivitiesBefore, listActivities, type RecordedActivity } from '../events/activity-store.js'
import { Moment } from '../http/answer/answer-fields.js'
import { cursorQuery } from '../http/pagination.js'
import { KEY_TYPES, PERMISSIONS } from '../http/principal.js'
import { listRoute, route, type Route } from '../http/route.js'
import { resource } from '../resource/resource.js'
import { retentionRule } from '../resource/retention.js'
import { deleteExpiredAnswers } from './idempotency-store.js'
import { workspaceRoutes } from './workspace-routes.js'
import type { WorkspaceParts } from './workspace-settings.js'

export const accounts = resource({
  chapters: {
    Workspace: 'The calling API key and the activity log.',
    Workspaces: 'Tenants of the appliance, and their settings.',
  },
  open: (parts: WorkspaceParts) => ({
    routes: [keyRoute(), ...workspaceRoutes(parts)],
    // Each row has its own expiry time.
    retention: [retentionRule({ what: 'answers of repeated requests', keep: 0 }, deleteExpiredAnswers)],
  }),
})

export interface ActivityParts {
  readonly database: Database
}

export const activity = resource({
  kept: { activity: { default: '365d', description: 'The activity log: who changed what in a workspace.' } },
  open: ({ database }: ActivityParts) => ({
    routes: [activityRoute(database.slowReader)],
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

const ActivitySchema = Type.Object(
  {
    id: Type.String(),
    actor: Type.Object({
      type: Type.Enum([...ACTOR_TYPES], {
        description: '`shell`: a user of the command line; `system`: Postroad itself.',
      }),
      id: Type.Optional(Type.String({ description: 'Id of the API key, operator or operator token.' })),
      name: Type.Optional(
        Type.String({
          description: 'Name of the API key or user, or email address of the operator, at the time.',
        }),
      ),
      peer: Type.Optional(Type.String({ description: 'IP address the request came from.' })),
    }),
    action: Type.String({ description: 'What was done, e.g. domain.added, api_key.revoked.' }),
    subject: Type.String({ description: 'What it was done to: a domain, an address, the name of a key.' }),
    details: Type.Record(Type.String(), Type.Unknown()),
    changes: Type.Record(Type.String(), Type.Object({ before: Type.Unknown(), after: Type.Unknown() }), {
      description: 'Settings that changed, by name, with their values before and after.',
    }),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
  },
  { title: 'Activity' },
)

export function activityRoute(reader: Queries): Route {
  return listRoute({
    method: 'GET',
    path: '/activity',
    access: 'activity:read',
    operationId: 'listActivity',
    chapter: 'Workspace',
    summary: 'List activity, newest first.',
    query: Type.Object(
      {
        ...cursorQuery,
        action: Type.Optional(Type.String({ maxLength: 64, description: 'Only this action.' })),
      },
      { additionalProperties: false },
    ),
    item: ActivitySchema,
    async handle({ principal, query }, page) {
      const found = await listActivities(reader, principal.workspaceId, query.action, page)
      return { ...found, items: found.items.map(one => activityToApi(one, principal.isSandbox)) }
    },
  })
}

export function activityToApi(
  { id, actor, action, subject, details, changes, createdAt }: RecordedActivity,
  isSandbox: boolean,
): Static<typeof ActivitySchema> {
  return {
    id: String(id),
    actor: { ...actor },
    action,
    subject,
    details: { ...details },
    changes: { ...changes },
    is_sandbox: isSandbox,
    created_at: isoTime(createdAt),
  }
}
