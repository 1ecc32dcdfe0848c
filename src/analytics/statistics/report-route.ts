/** `GET /analytics`: totals and daily counts of a period, for all mail or by campaign, tag or sender domain. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Database, Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { orNull } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { readTimeRange } from '../../http/time-range.js'
import { asciiDomain } from '../../mail/address.js'
import type { Clock } from '../../world/time/clock.js'
import {
  COUNTER_NAMES,
  readCounters,
  type CounterName,
  DIMENSIONS,
  MAX_VALUES,
  readGroupDays,
  readGroups,
  sumGroups,
  type Dimension,
  DAY_MS,
  dayOf,
} from './counter-store.js'

const PERIOD_DAYS = { '1d': 1, '7d': 7, '30d': 30, '90d': 90 } as const
type Period = keyof typeof PERIOD_DAYS

const USUAL_PERIOD: Period = '30d'

const count = (description: string) => Type.Integer({ description })

const totals = {
  accepted: count('Messages accepted, one per recipient to be mailed.'),
  sends: count('Messages handed to a remote server for the first time: campaign_sends + api_sends.'),
  campaign_sends: count('Sends of campaigns.'),
  api_sends: count('All other sends, by API or SMTP.'),
  delivered: count('Messages accepted by the remote server.'),
  opens: count('Opens, excluding prefetchers.'),
  clicks: count('Clicks, excluding link scanners.'),
  bounces: count('Messages permanently rejected, expired or bounced later.'),
  complaints: count('Messages reported as spam.'),
}

type Totals = Record<keyof typeof totals, number>

const Day = Type.String({ format: 'date', description: 'Day in UTC, e.g. 2026-01-05.' })

/** Groups listed separately. */
const MAX_GROUPS = 100
/** Maximum range, equal to the longest period. */
const MAX_DAYS = 90

const AnalyticsSchema = Type.Object(
  {
    period: Type.String({ description: '1d, 7d, 30d or 90d; `custom` if since or until was given.' }),
    since: Type.String({ format: 'date', description: 'First day (UTC), inclusive.' }),
    until: Type.String({ format: 'date', description: 'Last day (UTC), inclusive.' }),
    ...totals,
    daily_api_sends: Type.Array(Type.Object({ date: Day, count: Type.Integer() }, { title: 'DailyCount' })),
    daily: Type.Array(Type.Object({ date: Day, ...totals }, { title: 'AnalyticsDay' })),
    groups: Type.Optional(
      Type.Array(
        Type.Object(
          {
            value: orNull(Type.String(), {
              description: 'Campaign id, tag or domain; null: all others combined.',
            }),
            ...totals,
          },
          { title: 'AnalyticsGroup' },
        ),
        {
          description: `With group_by: the ${MAX_GROUPS} values with the most sends, then all others combined.`,
        },
      ),
    ),
  },
  { title: 'Analytics' },
)
type Analytics = Static<typeof AnalyticsSchema>

const Query = Type.Object(
  {
    period: Type.Optional(
      Type.Enum(Object.keys(PERIOD_DAYS) as [Period, ...Period[]], {
        default: USUAL_PERIOD,
        description: `1d, 7d, 30d or 90d, ending today. Default: ${USUAL_PERIOD}.`,
      }),
    ),
    since: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'First day (UTC), instead of period. Default: 29 days before until.',
      }),
    ),
    until: Type.Optional(
      Type.String({ maxLength: 64, description: 'Last day (UTC), instead of period. Default: today.' }),
    ),
    campaign_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: 'Only mail of this campaign.' }),
    ),
    tag: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: 'Only mail with this tag.' }),
    ),
    domain: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'Only mail with a From address at this domain.',
      }),
    ),
    group_by: Type.Optional(
      Type.Enum([...DIMENSIONS], { description: 'Adds `groups`: counts by campaign, tag or sender domain.' }),
    ),
  },
  { additionalProperties: false },
)
type Query = Static<typeof Query>

export function reportRoute(database: Pick<Database, 'reader' | 'slowReader'>, clock: Clock): Route {
  return route({
    method: 'GET',
    path: '/analytics',
    access: 'analytics:read',
    operationId: 'getAnalytics',
    chapter: 'Analytics',
    summary: 'Get sending statistics.',
    description:
      'A period of n days ends today; `since` and `until` select up to 90 days. Days are UTC, oldest first; days without activity are listed ' +
      'with zeros. Each event counts on the day it happened. A sandbox key gets sandbox statistics only.\n\n' +
      '`campaign_id`, `tag`, `domain` and `group_by` are mutually exclusive. An email with several tags counts for each of them; one without a ' +
      `tag or campaign counts for none. Up to ${MAX_VALUES} values of each kind are counted separately per day; further ones are combined under ` +
      'null. These breakdowns start with the upgrade that introduced them; earlier days read 0.',
    query: Query,
    response: AnalyticsSchema,
    async handle({ principal: { workspaceId }, query }) {
      const days = readDays(query, clock.now())
      const filter = readFilter(query)
      const range = { first: days[0] ?? 0, last: days.at(-1) ?? 0 }
      const count = (db: Queries) =>
        filter ? readFiltered(db, workspaceId, filter, days) : readAll(db, workspaceId, days)
      const dimension = query.group_by
      if (dimension === undefined) return report(readPeriod(query), days, await count(database.reader))
      return snapshot(database.slowReader, async db => ({
        ...report(readPeriod(query), days, await count(db)),
        groups: await groupsBy(db, workspaceId, dimension, range),
      }))
    },
  })
}

function readPeriod({ period = USUAL_PERIOD, since, until }: Query): string {
  return since === undefined && until === undefined ? period : 'custom'
}

/** Midnights, oldest first. @throws AppError validation_error */
function readDays(query: Query, now: number): number[] {
  const { period, since: first, until: last } = query
  if (first === undefined && last === undefined)
    return daysUpTo(dayOf(now), PERIOD_DAYS[period ?? USUAL_PERIOD])
  if (period !== undefined) throw refused('period', 'give period, or since and until, not both')
  const { since, until = Infinity } = readTimeRange(query)
  const end = dayOf(Math.min(until - 1, now))
  if (since === undefined) return daysUpTo(end, PERIOD_DAYS[USUAL_PERIOD])
  const days = (end - dayOf(since)) / DAY_MS + 1
  if (days < 1)
    throw last === undefined
      ? refused('since', 'since must not be in the future')
      : refused('until', 'until must not be before since')
  if (days > MAX_DAYS)
    throw refused('since', `a report covers at most ${MAX_DAYS} days, not ${days}; give a later since`)
  return daysUpTo(end, days)
}

function daysUpTo(last: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => last - (count - 1 - at) * DAY_MS)
}

interface Filter {
  readonly dimension: Dimension
  readonly value: string
}

/** @throws AppError validation_error */
function readFilter({ campaign_id: campaign, tag, domain, group_by: grouping }: Query): Filter | undefined {
  const given = Object.entries({ campaign_id: campaign, tag, domain, group_by: grouping }).filter(
    ([, value]) => value !== undefined,
  )
  const [, second] = given
  if (second) throw refused(second[0], 'give only one of campaign_id, tag, domain and group_by')
  if (campaign !== undefined) return { dimension: 'campaign', value: campaign.toLowerCase() }
  if (tag !== undefined) return { dimension: 'tag', value: tag }
  // An invalid domain matches no mail.
  return domain === undefined ? undefined : { dimension: 'domain', value: asciiDomain(domain) ?? domain }
}

function refused(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}

type CountsByDay = ReadonlyMap<number, (name: CounterName) => number>

async function readAll(db: Queries, workspaceId: string, days: readonly number[]): Promise<CountsByDay> {
  const byDay = new Map<number, Map<CounterName, number>>()
  for (const { day, name, count } of await readCounters(db, workspaceId, days[0] ?? 0))
    byDay.set(day, (byDay.get(day) ?? new Map<CounterName, number>()).set(name, count))
  return new Map([...byDay].map(([day, counts]) => [day, name => counts.get(name) ?? 0]))
}

async function readFiltered(
  db: Queries,
  workspaceId: string,
  { dimension, value }: Filter,
  days: readonly number[],
): Promise<CountsByDay> {
  const rows = await readGroupDays(db, workspaceId, dimension, value, days)
  return new Map(rows.map(row => [row.day, name => row[name]]))
}

function report(period: string, days: readonly number[], counted: CountsByDay): Analytics {
  const daily = days.map(day => ({ date: dateOf(day), ...toTotals(counted.get(day) ?? (() => 0)) }))
  return {
    period,
    since: dateOf(days[0] ?? 0),
    until: dateOf(days.at(-1) ?? 0),
    ...toTotals(name => daily.reduce((sum, day) => sum + day[name], 0)),
    daily_api_sends: daily.map(({ date, api_sends }) => ({ date, count: api_sends })),
    daily,
  }
}

/** The values with the most sends, then the sum of all others, if there are any. */
async function groupsBy(
  db: Queries,
  workspaceId: string,
  dimension: Dimension,
  range: { readonly first: number; readonly last: number },
): Promise<NonNullable<Analytics['groups']>> {
  const shown = await readGroups(db, workspaceId, dimension, range, MAX_GROUPS)
  const all = await sumGroups(db, workspaceId, dimension, range)
  const others = toTotals(name => shown.reduce((left, group) => left - group[name], all[name]))
  const groups = shown.map(group => ({ value: group.value, ...toTotals(name => group[name]) }))
  return Object.values(others).some(count => count > 0) ? [...groups, { value: null, ...others }] : groups
}

function dateOf(day: number): string {
  return isoTime(day).slice(0, 10)
}

function toTotals(countOf: (name: CounterName) => number): Totals {
  const counted = Object.fromEntries(COUNTER_NAMES.map(name => [name, countOf(name)])) as Record<
    CounterName,
    number
  >
  return { ...counted, sends: counted.campaign_sends + counted.api_sends }
}
