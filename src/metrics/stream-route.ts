/** `GET /live/stream`: what has changed, and live figures, as server-sent events. */
import Type from 'typebox'
import { adminEventsRoute } from '../http/admin-route.js'
import type { Route } from '../http/route.js'
import { LIVE_CHAPTER } from './live.js'
import { MAX_PER_OPERATOR, MAX_STREAMS, requireRoleIn, type LiveStreams } from './live-streams.js'
import { LIVE_TOPIC_NAMES } from './live-topics.js'

export function streamRoute(streams: LiveStreams): Route {
  return adminEventsRoute({
    method: 'GET',
    path: '/live/stream',
    access: { permission: 'any', scope: 'appliance' },
    operationId: 'streamLive',
    chapter: LIVE_CHAPTER,
    summary: 'Stream changes and live figures.',
    description:
      'Server-sent events: `ready` once, then at most one `live` a second, with JSON of this form: `changed` lists the kinds of records ' +
      `that may have changed since the last event (${LIVE_TOPIC_NAMES.map(name => `\`${name}\``).join(', ')}), ` +
      'of those that the caller may read; `figures`, if requested, is the `data` of `GET /live`. Every 15 seconds of silence, a comment. ' +
      'The stream ends with the session or token, and when the server stops; read everything again after reconnecting. At most ' +
      `${MAX_PER_OPERATOR} streams per operator and ${MAX_STREAMS} in total are open.`,
    query: Type.Object(
      {
        workspace_id: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 64,
            description:
              'Only changes in this workspace and its sandbox; default: all that the caller may read.',
          }),
        ),
        figures: Type.Optional(
          Type.Boolean({
            description: 'Include live figures, for callers with `system:read`. Default false.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    errors: ['not_found'],
    exampleAnswer: 'event: live\ndata: {"changed":["messages","queue"]}\n\n',
    async handle({ operator, query: { workspace_id: workspaceId, figures: hasFigures = false } }) {
      requireRoleIn(operator, workspaceId)
      return streams.open(operator, { workspaceId, hasFigures })
    },
  })
}
