import { given } from '../../core/given.js'
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { readTimeRange, sinceQuery } from '../../http/time-range.js'
import { getDomain, type Domain } from '../domains/domain-store.js'
import { findReport, listReports, REPORT_KINDS, type DomainReport } from './report-store.js'

const Fields = Type.Record(Type.String(), Type.Unknown())

const Kind = Type.Enum([...REPORT_KINDS])

const HEAD = {
  id: Id(),
  kind: Kind,
  domain: Type.String({
    description: 'The domain the report belongs to: the reported one, or the verified domain above it.',
  }),
  org_name: Type.String({ description: 'The reporting organization.' }),
  report_id: Type.String({ description: "The reporter's id of the report." }),
  begin_at: Moment(),
  end_at: Moment(),
  received_at: Moment(),
  authenticated_as: Type.Union([Type.String(), Type.Null()], {
    description: 'Domain of the sender that SPF authenticated. Null: anyone may have sent the report.',
  }),
  summary: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'dmarc: `domain`, the reported one, its published policy, and counts of messages, passed, quarantined and rejected. tlsrpt: the policies, and ' +
      'counts of successful and failed sessions.',
  }),
}

const ReportHeadSchema = Type.Object(HEAD, { title: 'DomainReportSummary' })
const ReportSchema = Type.Object(
  {
    ...HEAD,
    records: Type.Array(Fields, {
      description: 'dmarc: one per source; tlsrpt: one per kind of failure. At most 1,000.',
    }),
  },
  { title: 'DomainReport' },
)

/** @param slowReader used by the list */
export function reportRoutes(reader: Queries, slowReader = reader): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/domains/:id/reports',
      access: 'domains:read',
      operationId: 'listDomainReports',
      chapter: 'Domains',
      summary: 'List DMARC and TLS reports.',
      description:
        'DMARC aggregate reports (RFC 7489) and TLS reports (RFC 8460) received at `dmarc@` and `tlsrpt@` of the ' +
        "server's return path domain, latest first. Anyone can send one: `authenticated_as` names the domain of the sender if SPF " +
        'authenticates it. At most 500 per domain, kind and day are kept; reports that are not authenticated are dropped first, then ' +
        'those of the reporters with most. `since` applies to the end of the reported period. Sandbox domains have no reports. Returns 403 `domain_invalid` if the domain is not verified.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      query: Type.Object(
        {
          ...cursorQuery,
          kind: Type.Optional(Kind),
          ...sinceQuery,
        },
        { additionalProperties: false },
      ),
      item: ReportHeadSchema,
      errors: ['not_found', 'domain_invalid'],
      async handle({ principal, params, query }, page) {
        const { domain, isSandbox } = await getVerifiedDomain(reader, principal.workspaceId, params.id)
        const filter = {
          ...given({ kind: query.kind }),
          ...readTimeRange(query),
        }
        if (isSandbox) return { items: [], total: 0, end: undefined }
        const found = await listReports(slowReader, domain, filter, page)
        return { ...found, items: found.items.map(headToApi) }
      },
    }),
    route({
      method: 'GET',
      path: '/domains/:id/reports/:reportId',
      access: 'domains:read',
      operationId: 'getDomainReport',
      chapter: 'Domains',
      summary: 'Get a report with its records.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }), reportId: Type.String({ maxLength: 64 }) }),
      response: ReportSchema,
      errors: ['not_found', 'domain_invalid'],
      async handle({ principal, params }) {
        const { domain, isSandbox } = await getVerifiedDomain(reader, principal.workspaceId, params.id)
        const report =
          isUuid(params.reportId) && !isSandbox
            ? await findReport(reader, domain, params.reportId.toLowerCase())
            : undefined
        if (!report) throw new AppError('not_found', `no report with id ${params.reportId}`)
        return { ...headToApi(report), records: report.records.map(record => ({ ...record })) }
      },
    }),
  ]
}

/** Reports are stored by domain name only, so reading them requires a verified domain. @throws AppError not_found, domain_invalid */
export async function getVerifiedDomain(db: Queries, workspaceId: string, id: string): Promise<Domain> {
  const domain = await getDomain(db, workspaceId, id)
  if (domain.verifiedAt === null)
    throw new AppError(
      'domain_invalid',
      `domain ${domain.domain} is not verified; verify it to read its reports`,
    )
  return domain
}

function headToApi(report: Omit<DomainReport, 'records'>): Static<typeof ReportHeadSchema> {
  return {
    id: report.id,
    kind: report.kind,
    domain: report.domain,
    org_name: report.orgName,
    report_id: report.reportId,
    begin_at: isoTime(report.beginAt),
    end_at: isoTime(report.endAt),
    received_at: isoTime(report.receivedAt),
    authenticated_as: report.authenticatedAs,
    summary: { ...report.summary },
  }
}
