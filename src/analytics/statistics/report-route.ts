/** `GET /analytics`: totals and daily counts of a period, for all mail or by campaign, tag or sender domain. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isTimezone } from '../../accounts/workspace-settings.js'
import { isoTime, readDateOrMoment } from '../../core/moments.js'
import { must } from '../../core/must.js'
import type { Database, Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { orNull } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { noMoment } from '../../http/time-range.js'
import { asciiDomain } from '../../mail/address.js'
import type { Clock } from '../../world/time/clock.js'
import {
  DAY_MS,
  dayAt,
  midnightShifts,
  shiftedCount,
  type Day,
  type MidnightShift,
} from '../../world/time/zone-days.js'
import {
  COUNTER_NAMES,
  readCounters,
  type CounterName,
  DIMENSIONS,
  MAX_VALUES,
  readGroupDays,
  readGroups,
  sumGroups,
} from './counter-store.js'
import { EVERYTHING, signedCounts, sumSpans } from './quarter-store.js'

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

const Day = Type.String({ format: 'date', description: 'Day in the time zone, e.g. 2026-01-05.' })

/** Groups listed separately. */
const MAX_GROUPS = 100
/** Maximum range, equal to the longest period. */
const MAX_DAYS = 90

const AnalyticsSchema = Type.Object(
  {
    period: Type.String({ description: '1d, 7d, 30d or 90d; `custom` if since or until was given.' }),
    since: Type.String({ format: 'date', description: 'First day, inclusive.' }),
    until: Type.String({ format: 'date', description: 'Last day, inclusive.' }),
    timezone: Type.String({ description: 'Time zone of the days.' }),
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
        description: 'First day, instead of period. Default: 29 days before until.',
      }),
    ),
    until: Type.Optional(
      Type.String({ maxLength: 64, description: 'Last day, instead of period. Default: today.' }),
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
    timezone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'IANA time zone of the days. Default: UTC, not the time zone of the workspace.',
        examples: ['Europe/Berlin'],
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
      'A period of n days ends today; `since` and `until` select up to 90 days. Days are days of `timezone`, by default UTC, oldest first; days ' +
      'without activity are listed with zeros. Each event counts on the day it happened. A sandbox key gets sandbox statistics only.\n\n' +
      '`campaign_id`, `tag`, `domain` and `group_by` are mutually exclusive. An email with several tags counts for each of them; one without a ' +
      `tag or campaign counts for none. Up to ${MAX_VALUES} values of each kind are counted separately per day; further ones are combined under ` +
      'null. These breakdowns start with the upgrade that introduced them; earlier days read 0. ' +
      'Other time zones than UTC are exact for the last 90 days, and from the upgrade on that introduced `timezone`; earlier days are UTC days.',
    query: Query,
    response: AnalyticsSchema,
    async handle({ principal: { workspaceId }, query }) {
      const timezone = readTimezone(query)
      const days = readDays(query, clock.now(), timezone)
      const filter = readFilter(query)
      const shifts = midnightShifts(days, timezone)
      const answer = async (db: Queries) => {
        const counted = filter
          ? await readFiltered(db, workspaceId, filter, days)
          : await readAll(db, workspaceId, days)
        const of = filter ?? ({ dimension: 'all', value: EVERYTHING } as const)
        const shifted = await shift(db, workspaceId, of, days, shifts, counted)
        return { ...report(readPeriod(query), days, shifted), timezone }
      }
      const dimension = query.group_by
      if (dimension === undefined)
        return shifts.length === 0 ? answer(database.reader) : snapshot(database.slowReader, answer)
      return snapshot(database.slowReader, async db => ({
        ...(await answer(db)),
        groups: await groupsBy(db, workspaceId, dimension, days, shifts),
      }))
    },
  })
}

function readPeriod({ period = USUAL_PERIOD, since, until }: Query): string {
  return since === undefined && until === undefined ? period : 'custom'
}

/** @throws AppError validation_error */
function readTimezone({ timezone = 'UTC' }: Query): string {
  if (!isTimezone(timezone))
    throw refused('timezone', 'timezone must be an IANA time zone name, e.g. Europe/Berlin')
  return timezone
}

/** Oldest first. @throws AppError validation_error */
function readDays(query: Query, now: number, timezone: string): Day[] {
  const { period, since: first, until: last } = query
  const today = dayAt(now, timezone)
  if (first === undefined && last === undefined) return daysUpTo(today, PERIOD_DAYS[period ?? USUAL_PERIOD])
  if (period !== undefined) throw refused('period', 'give period, or since and until, not both')
  const since = readDay('since', first, at => dayAt(at, timezone))
  // A moment ends the period, a day is its last.
  const until = readDay('until', last, at => dayAt(at - 1, timezone))
  const end = Math.min(until ?? today, today)
  if (since === undefined) return daysUpTo(end, PERIOD_DAYS[USUAL_PERIOD])
  const days = (end - since) / DAY_MS + 1
  if (days < 1)
    throw last === undefined
      ? refused('since', 'since must not be in the future')
      : refused('until', 'until must not be before since')
  if (days > MAX_DAYS)
    throw refused('since', `a report covers at most ${MAX_DAYS} days, not ${days}; give a later since`)
  return daysUpTo(end, days)
}

/** @param dayOfMoment for text with a time @throws AppError validation_error */
function readDay(
  field: 'since' | 'until',
  text: string | undefined,
  dayOfMoment: (at: number) => Day,
): Day | undefined {
  if (text === undefined) return undefined
  const date = readDateOrMoment(text)
  if (!date) throw noMoment(field, text)
  return date.isDay ? date.at : dayOfMoment(date.at)
}

function daysUpTo(last: Day, count: number): Day[] {
  return Array.from({ length: count }, (_, at) => last - (count - 1 - at) * DAY_MS)
}

interface Filter {
  readonly dimension: (typeof DIMENSIONS)[number]
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

type CountsByDay = ReadonlyMap<Day, (name: CounterName) => number>

async function readAll(db: Queries, workspaceId: string, days: readonly number[]): Promise<CountsByDay> {
  const byDay = new Map<number, Map<CounterName, number>>()
  for (const { day, name, count } of await readCounters(db, workspaceId, must(days[0], 'the first day')))
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

/** Counts of days in UTC become those of days in the time zone. */
async function shift(
  db: Queries,
  workspaceId: string,
  of: { readonly dimension: Filter['dimension'] | 'all'; readonly value: string },
  days: readonly Day[],
  shifts: readonly MidnightShift[],
  counted: CountsByDay,
): Promise<CountsByDay> {
  if (shifts.length === 0) return counted
  const sums = await sumSpans(db, workspaceId, of, shifts)
  return new Map(
    days.map((day, at) => [
      day,
      name => shiftedCount(at, counted.get(day)?.(name) ?? 0, shifts, one => sums.get(one.at)?.[name] ?? 0),
    ]),
  )
}

function report(period: string, days: readonly Day[], counted: CountsByDay): Omit<Analytics, 'timezone'> {
  const daily = days.map(day => ({ date: dateOf(day), ...toTotals(counted.get(day) ?? (() => 0)) }))
  return {
    period,
    since: dateOf(must(days[0], 'the first day')),
    until: dateOf(must(days.at(-1), 'the last day')),
    ...toTotals(name => daily.reduce((sum, day) => sum + day[name], 0)),
    daily_api_sends: daily.map(({ date, api_sends }) => ({ date, count: api_sends })),
    daily,
  }
}

/** The values with the most sends, then the sum of all others, if there are any. */
async function groupsBy(
  db: Queries,
  workspaceId: string,
  dimension: Filter['dimension'],
  days: readonly Day[],
  shifts: readonly MidnightShift[],
): Promise<NonNullable<Analytics['groups']>> {
  const range = { first: must(days[0], 'the first day'), last: must(days.at(-1), 'the last day') }
  // Within the period nothing is gained or lost, but at its two ends.
  const edges = shifts.flatMap(one => {
    const { at, sign } = one
    if (at === 0) return signedCounts(workspaceId, dimension, one, sign)
    return at === days.length ? signedCounts(workspaceId, dimension, one, sign === 1 ? -1 : 1) : []
  })
  const shown = await readGroups(db, workspaceId, dimension, range, edges, MAX_GROUPS)
  const all = await sumGroups(db, workspaceId, dimension, range, edges)
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
