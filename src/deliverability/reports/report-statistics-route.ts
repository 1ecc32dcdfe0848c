/** `GET /domains/:id/report-statistics`: DMARC or TLS reports about a domain, added up for a chart. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import type { Queries } from '../../db/database.js'
import { route, type Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import type { Clock } from '../../world/time/clock.js'
import { getVerifiedDomain } from './report-routes.js'
import { REPORT_KINDS } from './report-store.js'
import { dayOf, reportStatistics, type ReportPeriod, type ReportStatistics } from './report-statistics.js'

const passed = Type.Integer({ description: 'Mails that passed DMARC, or sessions with TLS.' })
const failed = Type.Integer()

const StatisticsSchema = Type.Object(
  {
    kind: Type.Enum([...REPORT_KINDS]),
    reports: Type.Integer(),
    is_truncated: Type.Boolean({ description: 'There is more than is counted or listed here.' }),
    totals: Type.Object({
      passed,
      failed,
      quarantined: Type.Integer({ description: 'Mails that were treated as spam; dmarc only.' }),
      rejected: Type.Integer({ description: 'Mails that were refused; dmarc only.' }),
    }),
    unauthenticated: Type.Object(
      { reports: Type.Integer(), passed, failed },
      {
        description:
          'Part of the totals from reports whose sender SPF does not authenticate: anyone may have sent them.',
      },
    ),
    days: Type.Array(Type.Object({ date: Type.String({ format: 'date' }), passed, failed }), {
      description: 'Every day of the period, in UTC.',
    }),
    sources: Type.Array(
      Type.Object({
        source_ip: Type.String(),
        is_own: Type.Boolean({ description: 'Mail leaves from this address here.' }),
        passed,
        failed,
        dkim_passed: Type.Integer({ description: 'With an aligned DKIM signature that passed.' }),
        spf_passed: Type.Integer({ description: 'With an aligned SPF that passed.' }),
        quarantined: Type.Integer(),
        rejected: Type.Integer(),
        header_from: Type.Array(Type.String(), { description: 'Domains of From, at most ten.' }),
      }),
      { description: 'dmarc: where mail came from, most first; at most 100.' },
    ),
    failures: Type.Array(
      Type.Object({
        result_type: Type.String({ description: 'E.g. certificate-expired (RFC 8460 §4.3).' }),
        receiving_mx_hostname: Type.String(),
        failed_sessions: Type.Integer(),
      }),
      { description: 'tlsrpt: sessions that failed, most first; at most 100.' },
    ),
    reporters: Type.Array(
      Type.Object({
        org_name: Type.String(),
        authenticated_as: Type.Union([Type.String(), Type.Null()], {
          description: 'Domain of the sender that SPF authenticated; null if none.',
        }),
        reports: Type.Integer(),
        passed,
        failed,
      }),
      { description: 'Most reports first; at most 20.' },
    ),
  },
  { title: 'DomainReportStatistics' },
)

const EXAMPLE = {
  kind: 'dmarc',
  reports: 1,
  is_truncated: false,
  totals: { passed: 97, failed: 3, quarantined: 0, rejected: 3 },
  unauthenticated: { reports: 0, passed: 0, failed: 0 },
  days: [{ date: '2026-01-05', passed: 97, failed: 3 }],
  sources: [
    {
      source_ip: '192.0.2.7',
      is_own: true,
      passed: 97,
      failed: 0,
      dkim_passed: 97,
      spf_passed: 95,
      quarantined: 0,
      rejected: 0,
      header_from: ['example.com'],
    },
    {
      source_ip: '198.51.100.4',
      is_own: false,
      passed: 0,
      failed: 3,
      dkim_passed: 0,
      spf_passed: 0,
      quarantined: 0,
      rejected: 3,
      header_from: ['example.com'],
    },
  ],
  failures: [],
  reporters: [
    { org_name: 'Receiver', authenticated_as: 'receiver.example', reports: 1, passed: 97, failed: 3 },
  ],
} as const

const DAY_MS = 86_400_000
const USUAL_DAYS = 30
const MAX_DAYS = 400

export interface StatisticsParts {
  readonly reader: Queries
  readonly slowReader: Queries
  readonly clock: Pick<Clock, 'now'>
  readonly sendingAddresses: (workspaceId: string) => Promise<readonly string[]>
}

export function reportStatisticsRoute({
  reader,
  slowReader,
  clock,
  sendingAddresses,
}: StatisticsParts): Route {
  return route({
    method: 'GET',
    path: '/domains/:id/report-statistics',
    access: 'domains:read',
    operationId: 'getDomainReportStatistics',
    chapter: 'Domains',
    summary: 'Get statistics of DMARC or TLS reports.',
    description:
      'By day, by source and by reporter. A report counts for the day on which its period begins. Default: the last 30 days; at most 400. ' +
      'Reports that are authenticated count first if there are more than can be added up. Returns 403 `domain_invalid` if the domain is not verified.',
    params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
    query: Type.Object(
      { kind: Type.Optional(Type.Enum([...REPORT_KINDS], { default: 'dmarc' })), ...timeRangeQuery },
      { additionalProperties: false },
    ),
    response: StatisticsSchema,
    exampleAnswer: EXAMPLE,
    errors: ['not_found', 'domain_invalid'],
    async handle({ principal, params, query }) {
      const { domain, isSandbox } = await getVerifiedDomain(reader, principal.workspaceId, params.id)
      const { kind = 'dmarc' } = query
      const { until = dayOf(clock.now()) + DAY_MS, since = until - USUAL_DAYS * DAY_MS } =
        readTimeRange(query)
      if (until - since > MAX_DAYS * DAY_MS)
        throw new AppError('validation_error', `since and until are more than ${MAX_DAYS} days apart`, {
          path: 'since',
        })
      const period: ReportPeriod = { kind, since, until }
      const own = new Set(kind === 'dmarc' ? await sendingAddresses(principal.liveWorkspaceId) : [])
      const statistics = await reportStatistics(slowReader, isSandbox ? undefined : domain, period)
      return { kind, ...toApi(statistics, own) }
    },
  })
}

function toApi(statistics: ReportStatistics, own: ReadonlySet<string>) {
  const { reports, isTruncated, totals, unauthenticated, days, sources, failures, reporters } = statistics
  return {
    reports,
    is_truncated: isTruncated,
    totals,
    unauthenticated,
    days: [...days],
    sources: sources.map(one => ({
      source_ip: one.sourceIp,
      is_own: own.has(one.sourceIp),
      passed: one.passed,
      failed: one.failed,
      dkim_passed: one.dkimPassed,
      spf_passed: one.spfPassed,
      quarantined: one.quarantined,
      rejected: one.rejected,
      header_from: [...one.headerFrom],
    })),
    failures: failures.map(({ resultType, mxHost, sessions }) => ({
      result_type: resultType,
      receiving_mx_hostname: mxHost,
      failed_sessions: sessions,
    })),
    reporters: reporters.map(({ name, authenticatedAs, reports, passed, failed }) => ({
      org_name: name,
      authenticated_as: authenticatedAs,
      reports,
      passed,
      failed,
    })),
  }
}
