/** `GET /analytics`: totals of a period and of each of its days. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { route, type Route } from '../../http/route.js'
import type { Clock } from '../../world/time/clock.js'
import { COUNTER_NAMES, readCounters, type CounterName } from './daily-counter-store.js'
import { DAY_MS, dayOf } from '../day.js'

const PERIOD_DAYS = { '1d': 1, '7d': 7, '30d': 30, '90d': 90 } as const
type Period = keyof typeof PERIOD_DAYS

const USUAL_PERIOD: Period = '30d'

const count = (description: string) => Type.Integer({ description })

const totals = {
  accepted: count('Messages taken in, one for each recipient that is mailed.'),
  sends: count('Messages first handed to a remote server: campaign_sends and api_sends together.'),
  campaign_sends: count('Those of campaigns.'),
  api_sends: count('All others, whether they came by this API or by SMTP.'),
  delivered: count('A remote server took responsibility.'),
  opens: count('Every time a message was opened, without machines that fetch ahead.'),
  clicks: count('Every click, without machines that follow links.'),
  bounces: count('Refused for good, expired, or come back.'),
  complaints: count('Marked as spam.'),
}

type Totals = Record<keyof typeof totals, number>

const Day = Type.String({ format: 'date', description: 'Day in UTC, e.g. 2026-01-05.' })

const AnalyticsSchema = Type.Object(
  {
    period: Type.String(),
    ...totals,
    daily_api_sends: Type.Array(Type.Object({ date: Day, count: Type.Integer() }, { title: 'DailyCount' })),
    daily: Type.Array(Type.Object({ date: Day, ...totals }, { title: 'AnalyticsDay' })),
  },
  { title: 'Analytics' },
)

export function reportRoute(reader: Queries, clock: Clock): Route {
  return route({
    method: 'GET',
    path: '/analytics',
    access: 'analytics:read',
    operationId: 'getAnalytics',
    chapter: 'Analytics',
    summary: 'How many messages were sent, delivered, opened, clicked and bounced.',
    description:
      'A period of n days is today and the n - 1 days before it, in UTC; days on which nothing happened are there with ' +
      'zeros, oldest first. Each thing counts on the day on which it happened, and with a sandbox key the sandbox is counted, and nothing else.',
    query: Type.Object(
      {
        period: Type.Optional(
          Type.Enum(Object.keys(PERIOD_DAYS) as [Period, ...Period[]], {
            default: USUAL_PERIOD,
            description: `1d, 7d, 30d or 90d; default ${USUAL_PERIOD}.`,
          }),
        ),
      },
      { additionalProperties: false },
    ),
    response: AnalyticsSchema,
    async handle({ principal, query: { period = USUAL_PERIOD } }) {
      const today = dayOf(clock.now())
      const days = Array.from(
        { length: PERIOD_DAYS[period] },
        (_, index) => today - (PERIOD_DAYS[period] - 1 - index) * DAY_MS,
      )
      return report(reader, principal.workspaceId, period, days)
    },
  })
}

async function report(
  reader: Queries,
  workspaceId: string,
  period: Period,
  days: readonly number[],
): Promise<Static<typeof AnalyticsSchema>> {
  const byDay = new Map(days.map(day => [day, new Map<CounterName, number>()]))
  for (const { day, name, count } of await readCounters(reader, workspaceId, days[0] ?? 0))
    byDay.get(day)?.set(name, count)
  const daily = [...byDay].map(([day, counts]) => ({
    date: isoTime(day).slice(0, 10),
    ...toTotals(name => counts.get(name) ?? 0),
  }))
  return {
    period,
    ...toTotals(name => daily.reduce((sum, day) => sum + day[name], 0)),
    daily_api_sends: daily.map(({ date, api_sends }) => ({ date, count: api_sends })),
    daily,
  }
}

function toTotals(countOf: (name: CounterName) => number): Totals {
  const counted = Object.fromEntries(COUNTER_NAMES.map(name => [name, countOf(name)])) as Record<
    CounterName,
    number
  >
  return { ...counted, sends: counted.campaign_sends + counted.api_sends }
}
