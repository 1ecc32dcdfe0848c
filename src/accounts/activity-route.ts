import Type, { type Static } from 'typebox'
import { isoTime } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import { ACTOR_TYPES, listActivities, type RecordedActivity } from '../events/activity-store.js'
import { Id, Moment } from '../http/answer/answer-fields.js'
import { cursorQuery } from '../http/pagination.js'
import { listRoute, type Route } from '../http/route.js'

const ActivitySchema = Type.Object(
  {
    id: Type.String(),
    actor: Type.Object({
      type: Type.Enum([...ACTOR_TYPES], {
        description: '`operator`: a user of the command line.',
      }),
      id: Type.Optional(Id({ description: 'Id of the API key.' })),
      name: Type.Optional(Type.String({ description: 'Name of the API key at the time.' })),
    }),
    action: Type.String({ description: 'What was done, e.g. domain.added, api_key.revoked.' }),
    subject: Type.String({ description: 'What it was done to: a domain, an address, the name of a key.' }),
    details: Type.Record(Type.String(), Type.Unknown()),
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
  { id, actor, action, subject, details, createdAt }: RecordedActivity,
  isSandbox: boolean,
): Static<typeof ActivitySchema> {
  return {
    id: String(id),
    actor: { ...actor },
    action,
    subject,
    details: { ...details },
    is_sandbox: isSandbox,
    created_at: isoTime(createdAt),
  }
}
