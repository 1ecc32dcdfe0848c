/** Set-aside events in the admin API: list, retry, drop. Consumers retry marked events within a minute. */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import { APPLIANCE } from '../core/owner.js'
import type { Database, Queries } from '../db/database.js'
import { adminListRoute, adminRoute } from '../http/admin-route.js'
import { Moment, TextOrNull } from '../http/answer/answer-fields.js'
import { PageQuery } from '../http/pagination.js'
import type { Route } from '../http/route.js'
import type { Clock } from '../world/time/clock.js'
import { recordActivity } from '../events/activity-store.js'
import {
  dropSetAside,
  listSetAside,
  requestRetry,
  type SetAsideEvent,
  type SetAsideSelection,
} from '../events/set-aside-store.js'

export interface SetAsideParts {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
}

const CHAPTER = 'Set-aside events'

const SetAsideSchema = Type.Object(
  {
    consumer: Type.String({ description: 'The part that failed to process it.' }),
    number: Type.Integer({ description: 'Number of the event in the event log.' }),
    event: Type.String({ description: 'E.g. email.bounced.' }),
    workspace_id: Type.String(),
    message_id: TextOrNull(),
    occurred_at: Moment(),
    set_aside_at: Moment(),
    error: Type.String(),
  },
  { title: 'SetAsideEvent' },
)
export type SetAsideView = Static<typeof SetAsideSchema>

const Selection = Type.Object(
  {
    consumer: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    number: Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999_999_999_999 })),
    all: Type.Optional(Type.Literal(true)),
  },
  { additionalProperties: false, description: 'A consumer and a number, or all.' },
)

export function setAsideRoutes(parts: SetAsideParts): Route[] {
  const { reader } = parts.database
  return [
    adminListRoute({
      method: 'GET',
      path: '/events/set-aside',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'listSetAsideEvents',
      chapter: CHAPTER,
      summary: 'List set-aside events, oldest first.',
      query: PageQuery,
      item: SetAsideSchema,
      async handle(_, page) {
        const found = await listSetAside(reader, page)
        return { ...found, items: found.items.map(eventToApi) }
      },
    }),
    changeRoute(parts, 'retry', 'retrySetAsideEvents', 'Retry set-aside events.', requestRetry),
    changeRoute(parts, 'drop', 'dropSetAsideEvents', 'Drop set-aside events.', dropSetAside),
  ]
}

type Change = (db: Queries, selection: SetAsideSelection) => Promise<number>

const ACTIONS = { retry: 'set_aside_event.retried', drop: 'set_aside_event.dropped' } as const

function changeRoute(
  { database, clock }: SetAsideParts,
  kind: keyof typeof ACTIONS,
  operationId: string,
  summary: string,
  change: Change,
): Route {
  return adminRoute({
    method: 'POST',
    path: `/events/set-aside/${kind}`,
    access: { permission: 'system:write', scope: 'appliance' },
    operationId,
    chapter: CHAPTER,
    summary,
    ...(kind === 'drop' ? { description: 'They are discarded without being processed.' } : {}),
    body: Selection,
    example: { all: true },
    response: Type.Object({ changed: Type.Integer() }, { title: 'SetAsideChanged' }),
    errors: ['not_found'],
    async handle({ body, operator }) {
      const selection = readSelection(body)
      const changed = await database.write(async tx => {
        const events = await change(tx.db, selection)
        if (events > 0)
          await recordActivity(tx, { workspaceId: APPLIANCE, actor: operator.actor }, clock.now(), {
            action: ACTIONS[kind],
            subject:
              'seq' in selection ? `event ${selection.seq} of ${selection.consumer}` : 'all set-aside events',
            details: { events },
          })
        return events
      })
      if (changed === 0 && 'seq' in selection)
        throw new AppError('not_found', `no event ${selection.seq} of ${selection.consumer} is set aside`)
      return { changed }
    },
  })
}

/** @throws AppError validation_error */
function readSelection({ consumer, number, all }: Static<typeof Selection>): SetAsideSelection {
  if (all && consumer === undefined && number === undefined) return { isAll: true }
  if (all || consumer === undefined || number === undefined)
    throw new AppError('validation_error', 'give a consumer and a number, or all')
  return { consumer, seq: number }
}

function eventToApi({ consumer, event, error, setAsideAt }: SetAsideEvent): SetAsideView {
  return {
    consumer,
    number: event.seq,
    event: event.kind,
    workspace_id: event.workspaceId,
    message_id: event.messageId,
    occurred_at: isoTime(event.occurredAt),
    set_aside_at: isoTime(setAsideAt),
    error,
  }
}
