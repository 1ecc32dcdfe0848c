/** The activity log: `GET /activity` of the REST API for one workspace, and the whole log in the admin API. */
import Type, { type Static } from 'typebox'
import { ACTOR_TYPES } from '../core/actor.js'
import { csvText } from '../core/csv.js'
import { AppError } from '../core/errors.js'
import { given } from '../core/given.js'
import { isoTime } from '../core/moments.js'
import { must } from '../core/must.js'
import { isAppliance } from '../core/owner.js'
import type { Database, Queries } from '../db/database.js'
import {
  activitiesBefore,
  findActivity,
  listActivities,
  type ActivityFilter,
  type RecordedActivity,
} from '../events/activity-store.js'
import { adminDownloadRoute, adminListRoute, adminRoute } from '../http/admin-route.js'
import { Moment } from '../http/answer/answer-fields.js'
import { hasRoleIn, requirePermission } from '../http/operator.js'
import { cursorQuery } from '../http/pagination.js'
import { ALL_WORKSPACES } from '../http/roles.js'
import { listRoute, type Route } from '../http/route.js'
import { readTimeRange, timeRangeQuery } from '../http/time-range.js'
import { listSandboxes } from './workspace-store.js'

const fields = {
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
}

const ActivitySchema = Type.Object(fields, { title: 'Activity' })

const LoggedActivitySchema = Type.Object(
  {
    ...fields,
    workspace_id: Type.Union([Type.String(), Type.Null()], { description: 'Null: the appliance itself.' }),
  },
  { title: 'LoggedActivity' },
)

const EXAMPLE: Static<typeof LoggedActivitySchema> = {
  id: '7',
  actor: { type: 'shell' },
  action: 'domain.added',
  subject: 'example.com',
  details: {},
  changes: {},
  is_sandbox: false,
  created_at: '2026-01-05T10:00:00.000Z',
  workspace_id: null,
}

const actionQuery = Type.Optional(Type.String({ maxLength: 64, description: 'Only this action.' }))

const filters = {
  workspace_id: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'Only this workspace; default: all, and the appliance itself.',
    }),
  ),
  action: actionQuery,
  actor: Type.Optional(
    Type.String({
      maxLength: 254,
      description: 'Only by this actor: id or name, ignoring case, or a type such as `shell`.',
    }),
  ),
  subject: Type.Optional(
    Type.String({ maxLength: 254, description: 'Only subjects that contain this text, ignoring case.' }),
  ),
  ...timeRangeQuery,
}

type Filters = Static<ReturnType<typeof Type.Object<typeof filters>>>

export function activityRoute(reader: Queries): Route {
  return listRoute({
    method: 'GET',
    path: '/activity',
    access: 'activity:read',
    operationId: 'listActivity',
    chapter: 'Workspace',
    summary: 'List activity, newest first.',
    query: Type.Object({ ...cursorQuery, action: actionQuery }, { additionalProperties: false }),
    item: ActivitySchema,
    async handle({ principal, query }, page) {
      const filter = { workspaceId: principal.workspaceId, ...given({ action: query.action }) }
      const found = await listActivities(reader, filter, page)
      return { ...found, items: found.items.map(one => activityToApi(one, principal.isSandbox)) }
    },
  })
}

export function activityAdminRoutes({ reader, slowReader, exportReader }: Database): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/activity',
      access: { permission: 'activity:read', scope: 'query' },
      operationId: 'searchActivity',
      chapter: 'Activity',
      summary: 'Search the activity log.',
      description:
        'Newest first. Without workspace_id: all workspaces, their sandboxes and the appliance itself.',
      query: Type.Object({ ...cursorQuery, ...filters }, { additionalProperties: false }),
      item: LoggedActivitySchema,
      async handle({ query, workspaceId }, page) {
        const found = await listActivities(slowReader, filterOf(query, workspaceId), page)
        return { ...found, items: await withWorkspaces(slowReader, found.items) }
      },
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/activity/export',
      access: { permission: 'activity:read', scope: 'query' },
      operationId: 'exportActivity',
      chapter: 'Activity',
      summary: 'Export the activity log.',
      description:
        'All matching entries, newest first: CSV, or one JSON object per line with `format=jsonl`.',
      query: Type.Object(
        {
          ...filters,
          format: Type.Optional(Type.Enum(['csv', 'jsonl'], { description: 'Default csv.' })),
        },
        { additionalProperties: false },
      ),
      mediaType: 'text/csv',
      exampleAnswer: `${csvText([CSV_COLUMNS])}\n`,
      otherFiles: [
        {
          mediaType: 'application/jsonl',
          schema: Type.String({ description: 'Each line is a `LoggedActivity`.' }),
          example: `${JSON.stringify(EXAMPLE)}\n`,
        },
      ],
      async handle({ query, workspaceId }) {
        const filter = filterOf(query, workspaceId)
        const isJson = query.format === 'jsonl'
        return {
          fileName: `activity.${isJson ? 'jsonl' : 'csv'}`,
          mediaType: isJson ? 'application/jsonl' : 'text/csv',
          pieces: gone => exported(exportReader, filter, isJson, gone),
        }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/activity/:id',
      access: { permission: 'activity:read', scope: 'record' },
      operationId: 'getActivity',
      chapter: 'Activity',
      summary: 'Get an entry of the activity log.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      response: LoggedActivitySchema,
      errors: ['not_found'],
      async handle({ operator, params: { id } }) {
        const found = /^[1-9]\d{0,14}$/.test(id) ? await findActivity(reader, Number(id)) : undefined
        const [shown] = await withWorkspaces(reader, found ? [found] : [])
        const place = shown?.workspace_id ?? ALL_WORKSPACES
        if (!shown || !hasRoleIn(operator, place)) throw new AppError('not_found', 'no such entry')
        requirePermission(operator, 'activity:read', place)
        return shown
      },
    }),
  ]
}

/** @throws AppError validation_error */
function filterOf(
  { action, actor, subject, ...range }: Filters,
  workspaceId: string | undefined,
): ActivityFilter {
  return { ...given({ workspaceId, action, actor, subject }), ...readTimeRange(range) }
}

const CSV_COLUMNS = [
  ...['created_at', 'workspace_id', 'actor_type', 'actor_name', 'actor_id', 'peer'],
  ...['action', 'subject', 'changes', 'details'],
]
const EXPORT_PAGE = 500

async function* exported(
  db: Queries,
  filter: ActivityFilter,
  isJson: boolean,
  gone: AbortSignal,
): AsyncGenerator<string> {
  if (!isJson) yield `${csvText([CSV_COLUMNS])}\n`
  for (let before = Number.MAX_SAFE_INTEGER; !gone.aborted;) {
    const found = await activitiesBefore(db, filter, before, EXPORT_PAGE)
    const shown = await withWorkspaces(db, found)
    if (shown.length > 0)
      yield isJson
        ? shown.map(one => `${JSON.stringify(one)}\n`).join('')
        : `${csvText(shown.map(cellsOf))}\n`
    if (found.length < EXPORT_PAGE) return
    before = must(found.at(-1), 'the last activity').id
  }
}

function cellsOf(one: Static<typeof LoggedActivitySchema>): string[] {
  const { actor } = one
  return [
    ...[
      one.created_at,
      one.workspace_id ?? '',
      actor.type,
      actor.name ?? '',
      actor.id ?? '',
      actor.peer ?? '',
    ],
    ...[one.action, one.subject, JSON.stringify(one.changes), JSON.stringify(one.details)],
  ]
}

/** Names the live workspace of sandboxes. */
async function withWorkspaces(
  db: Queries,
  items: readonly RecordedActivity[],
): Promise<Static<typeof LoggedActivitySchema>[]> {
  const sandboxes = await listSandboxes(db, [...new Set(items.map(({ workspaceId }) => workspaceId))])
  return items.map(one => {
    const live = sandboxes.get(one.workspaceId)
    return {
      ...activityToApi(one, live !== undefined),
      workspace_id: isAppliance(one.workspaceId) ? null : (live ?? one.workspaceId),
    }
  })
}

function activityToApi(
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
