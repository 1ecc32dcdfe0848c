/** Workspaces in the admin API. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../core/moments.js'
import { adminListRoute, adminRoute } from '../http/admin-route.js'
import { Id, Moment } from '../http/answer/answer-fields.js'
import { ALL_WORKSPACES } from '../http/roles.js'
import { mayOperate, requirePermission, type OperatorPrincipal } from '../http/operator.js'
import { cursorQuery } from '../http/pagination.js'
import { Tagged } from '../http/preconditions.js'
import type { Route } from '../http/route.js'
import {
  changeWorkspace,
  createWorkspace,
  getWorkspace,
  removeWorkspace,
  restoreWorkspace,
  Settings,
  workspaceEtag,
  workspaceToApi,
  type WorkspaceParts,
} from './workspace-settings.js'
import { listWorkspacePage, REMOVED_BY, type RemovedBy, type Workspace } from './workspace-store.js'

const WorkspaceSchema = Type.Object(
  {
    id: Id(),
    ...Settings.properties,
    created_at: Moment(),
    removed_at: Type.Optional(Moment({ description: 'Only in the list of removed workspaces.' })),
    removed_by: Type.Optional(
      Type.Enum([...REMOVED_BY], {
        description:
          'Only in that list. `appliance`: by an operator of all workspaces, and only those can restore it.',
      }),
    ),
  },
  { title: 'Workspace' },
)

const APPLIANCE_SETTINGS = ['hourly_limit', 'daily_limit', 'allow_private_webhooks'] as const

const Named = Type.Object({ workspaceId: Type.String({ maxLength: 64 }) })

const { name: nameSchema, ...otherSettings } = Settings.properties

export function workspaceRoutes(parts: WorkspaceParts): Route[] {
  const { database, clock } = parts
  return [
    adminListRoute({
      method: 'GET',
      path: '/workspaces',
      access: { permission: 'workspace:read', scope: 'record' },
      operationId: 'listWorkspaces',
      chapter: 'Workspaces',
      summary: 'List workspaces.',
      description: 'Those in which you have a role, oldest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          removed: Type.Optional(
            Type.Boolean({
              description: 'Only removed workspaces that can still be restored, instead of the others.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      item: WorkspaceSchema,
      async handle({ operator, query }, page) {
        const found = await listWorkspacePage(
          database.reader,
          { ids: workspacesOf(operator), isRemoved: query.removed ?? false, now: clock.now() },
          page,
        )
        return {
          ...found,
          items: found.items.map(one => ({
            ...workspaceToApi(one),
            ...(one.removedAt === null
              ? {}
              : { removed_at: isoTime(one.removedAt), removed_by: one.removedBy }),
          })),
        }
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/workspaces',
      access: { permission: 'workspace:write', scope: 'appliance' },
      operationId: 'createWorkspace',
      hasEtag: true,
      chapter: 'Workspaces',
      summary: 'Create a workspace.',
      body: Type.Object(
        { name: nameSchema, ...Type.Partial(Type.Object(otherSettings)).properties },
        { additionalProperties: false, title: 'NewWorkspace' },
      ),
      status: 201,
      response: WorkspaceSchema,
      errors: ['duplicate'],
      handle: async ({ operator, body }) => tagged(await createWorkspace(parts, body, operator.actor)),
    }),
    adminRoute({
      method: 'GET',
      path: '/workspaces/:workspaceId',
      access: { permission: 'workspace:read', scope: 'path' },
      operationId: 'getWorkspace',
      hasEtag: true,
      chapter: 'Workspaces',
      summary: 'Get a workspace and its settings.',
      params: Named,
      response: WorkspaceSchema,
      handle: async ({ params }) => tagged(await getWorkspace(database.reader, params.workspaceId)),
    }),
    adminRoute({
      method: 'PATCH',
      path: '/workspaces/:workspaceId',
      access: { permission: 'workspace:write', scope: 'path' },
      operationId: 'updateWorkspace',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Workspaces',
      summary: "Change a workspace's settings.",
      description:
        `${APPLIANCE_SETTINGS.map(name => `\`${name}\``).join(', ')} protect the appliance from the workspace: ` +
        'changing them requires a role in all workspaces.',
      params: Named,
      body: Type.Partial(Settings, {
        additionalProperties: false,
        minProperties: 1,
        title: 'WorkspaceChanges',
      }),
      response: WorkspaceSchema,
      errors: ['duplicate'],
      async handle({ operator, params, body, precondition }) {
        if (APPLIANCE_SETTINGS.some(name => body[name] !== undefined))
          requirePermission(operator, 'workspace:write', ALL_WORKSPACES)
        return tagged(await changeWorkspace(parts, params.workspaceId, body, operator.actor, precondition))
      },
    }),
    adminRoute({
      method: 'DELETE',
      path: '/workspaces/:workspaceId',
      access: { permission: 'workspace:write', scope: 'path', isSensitive: true },
      operationId: 'removeWorkspace',
      checksEtag: true,
      chapter: 'Workspaces',
      summary: 'Remove a workspace.',
      description:
        'Disables its keys and holds its queued mail. It can be restored for 30 days; then everything in it is deleted.',
      params: Named,
      response: Type.Object(
        {
          success: Type.Literal(true),
          held: Type.Integer({ description: 'Queued messages that are now held.' }),
        },
        { title: 'WorkspaceRemoved' },
      ),
      handle: async ({ operator, params, precondition }) => ({
        success: true as const,
        held: await removeWorkspace(
          parts,
          params.workspaceId,
          powerOf(operator),
          operator.actor,
          precondition,
        ),
      }),
    }),
    adminRoute({
      method: 'POST',
      path: '/workspaces/:workspaceId/restore',
      access: { permission: 'workspace:write', scope: 'path' },
      operationId: 'restoreWorkspace',
      hasEtag: true,
      chapter: 'Workspaces',
      summary: 'Restore a removed workspace.',
      description:
        'Its keys work again. Its queued mail stays held until it is released. What an operator of all workspaces removed, only those restore.',
      params: Named,
      response: WorkspaceSchema,
      errors: ['duplicate'],
      handle: async ({ operator, params }) =>
        tagged(await restoreWorkspace(parts, params.workspaceId, powerOf(operator), operator.actor)),
    }),
  ]
}

function tagged(workspace: Workspace): Tagged<Static<typeof WorkspaceSchema>> {
  return new Tagged(workspaceToApi(workspace), workspaceEtag(workspace))
}

/** In whose name the operator removes and restores workspaces. */
function powerOf(operator: OperatorPrincipal): RemovedBy {
  return mayOperate(operator, 'workspace:write', ALL_WORKSPACES) ? 'appliance' : 'workspace'
}

/** @returns undefined: all */
function workspacesOf({ grants }: OperatorPrincipal): string[] | undefined {
  const ids = grants.map(({ workspaceId }) => workspaceId)
  return ids.includes(ALL_WORKSPACES) ? undefined : ids
}
