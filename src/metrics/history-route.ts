/** `GET /live/history`: what happened to mail by minute, hour or day, beside the period before. */
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { isTimezone } from '../accounts/workspace-settings.js'
import { isoTime } from '../core/moments.js'
import type { Database, Queries } from '../db/database.js'
import { snapshot } from '../db/snapshot.js'
import { adminRoute } from '../http/admin-route.js'
import { Moment } from '../http/answer/answer-fields.js'
import type { Route } from '../http/route.js'
import {
  ALL_MAIL,
  RECENT_NAMES,
  readRecent,
  SPANS,
  startOf,
  sumShifts,
  type RecentName,
  type Span,
} from '../messages/recent-counter-store.js'
import type { Clock } from '../world/time/clock.js'
import {
  dayAt,
  midnightShifts,
  shiftedCount,
  startOfDay,
  type Day,
  type MidnightShift,
} from '../world/time/zone-days.js'
import { LIVE_CHAPTER, ofWorkspace, requireWorkspace } from './live.js'

export interface HistoryParts {
  readonly database: Pick<Database, 'reader' | 'slowReader'>
  readonly clock: Pick<Clock, 'now'>
  readonly hasWorkspace: (db: Queries, id: string) => Promise<boolean>
}

/** Spans of a period: an hour, a day, 30 days. */
export const SPANS_OF_PERIOD = { minute: 60, hour: 24, day: 30 } as const satisfies Record<Span, number>

const counts = {
  accepted: Type.Integer({ description: 'Messages accepted, one per recipient.' }),
  sent: Type.Integer({ description: 'Messages handed to a remote server for the first time.' }),
  delivered: Type.Integer({ description: 'Messages accepted by the remote server.' }),
  deferred: Type.Integer({ description: 'Attempts that will be repeated.' }),
  bounced: Type.Integer({ description: 'Messages permanently rejected, expired or bounced later.' }),
  complained: Type.Integer({ description: 'Messages reported as spam.' }),
  opened: Type.Integer({ description: 'Opens, excluding prefetchers.' }),
  clicked: Type.Integer({ description: 'Clicks, excluding link scanners.' }),
}
type Counts = Record<RecentName, number>

const PeriodSchema = Type.Object(
  {
    ...counts,
    points: Type.Array(
      Type.Object(
        { at: Moment({ description: 'When the minute, hour or day begins.' }), ...counts },
        { title: 'LiveHistoryPoint' },
      ),
      { description: 'Oldest first, without gaps.' },
    ),
  },
  { title: 'LiveHistoryPeriod' },
)

const HistorySchema = Type.Object(
  {
    span: Type.Enum(['minute', 'hour', 'day']),
    current: PeriodSchema,
    previous: PeriodSchema,
  },
  { title: 'LiveHistory' },
)

export function historyRoute({ database, clock, hasWorkspace }: HistoryParts): Route {
  return adminRoute({
    method: 'GET',
    path: '/live/history',
    access: { permission: 'analytics:read', scope: 'query' },
    operationId: 'getLiveHistory',
    chapter: LIVE_CHAPTER,
    summary: 'Count mail by minute, hour or day.',
    description:
      'The last 60 minutes, 24 hours or 30 days, the current one included, and as many before them. Read from counters, whatever the number ' +
      'of stored messages. Each event counts at the moment it happened, normally within a second.',
    query: Type.Object(
      {
        span: Type.Optional(Type.Enum(['minute', 'hour', 'day'], { description: 'Default minute.' })),
        timezone: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 64,
            description:
              'IANA time zone of the days, with `span=day`; default UTC. To the hour, and from the upgrade on that introduced it; earlier days are UTC days.',
          }),
        ),
        ...ofWorkspace,
      },
      { additionalProperties: false },
    ),
    response: HistorySchema,
    errors: ['not_found'],
    async handle({ query: { span = 'minute', timezone = 'UTC' }, workspaceId }) {
      const { reader } = database
      await requireWorkspace(hasWorkspace, reader, workspaceId)
      if (!isTimezone(timezone))
        throw new AppError(
          'validation_error',
          'timezone must be an IANA time zone name, e.g. Europe/Berlin',
          {
            path: 'timezone',
          },
        )
      const length = SPANS_OF_PERIOD[span]
      const { ms } = SPANS[span]
      const last = span === 'day' ? dayAt(clock.now(), timezone) : startOf(span, clock.now())
      const first = last - (length - 1) * ms
      const before = first - length * ms
      const owner = workspaceId ?? ALL_MAIL
      const days = Array.from({ length: 2 * length }, (_, index) => before + index * ms)
      const shifts = span === 'day' ? midnightShifts(days, timezone) : []
      const found =
        shifts.length === 0
          ? await readPoints(reader, owner, span, before)
          : await snapshot(database.slowReader, async db =>
              shiftPoints(
                days,
                shifts,
                await readPoints(db, owner, span, before),
                await sumShifts(db, owner, shifts),
              ),
            )
      const periodFrom = (start: number) => {
        const points = Array.from({ length }, (_, index) => start + index * ms)
        const beginOf = (at: number) => (span === 'day' ? startOfDay(at, timezone) : at)
        return periodOf(points.map(at => ({ ...(found.get(at) ?? noCounts()), at: beginOf(at) })))
      }
      return { span, current: periodFrom(first), previous: periodFrom(before) }
    },
  })
}

type Points = ReadonlyMap<number, Counts>

/** By beginning of the span; spans without counts are omitted. */
async function readPoints(db: Queries, owner: string, span: Span, from: number): Promise<Points> {
  const found = new Map<number, Counts>()
  for (const { startsAt, name, count } of await readRecent(db, owner, span, from)) {
    const point = found.get(startsAt) ?? noCounts()
    point[name] += count
    found.set(startsAt, point)
  }
  return found
}

/** Counts of UTC days become those of days in the time zone. */
function shiftPoints(
  days: readonly Day[],
  shifts: readonly MidnightShift[],
  inUtc: Points,
  sums: Awaited<ReturnType<typeof sumShifts>>,
): Points {
  return new Map(
    days.map((day, at) => {
      const point = noCounts()
      for (const name of RECENT_NAMES)
        point[name] = shiftedCount(
          at,
          inUtc.get(day)?.[name] ?? 0,
          shifts,
          one => sums.get(one.at)?.[name] ?? 0,
        )
      return [day, point]
    }),
  )
}

function periodOf(points: readonly (Counts & { readonly at: number })[]) {
  const sums = noCounts()
  for (const point of points) for (const name of RECENT_NAMES) sums[name] += point[name]
  return { ...sums, points: points.map(point => ({ ...point, at: isoTime(point.at) })) }
}

function noCounts(): Counts {
  return {
    accepted: 0,
    sent: 0,
    delivered: 0,
    deferred: 0,
    bounced: 0,
    complained: 0,
    opened: 0,
    clicked: 0,
  }
}
