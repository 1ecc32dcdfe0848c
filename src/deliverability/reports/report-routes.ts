/** Routes of the reports that other systems send about a domain: DMARC aggregate and TLS reports. */
import { given } from '../../core/given.js'
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { pageQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { readTimeRange, sinceQuery } from '../../http/time-range.js'
import { findDomain, type Domain } from '../domains/domain-store.js'
import { findReport, listReports, REPORT_KINDS, type DomainReport } from './report-store.js'

const Fields = Type.Record(Type.String(), Type.Unknown())

const Kind = Type.Enum([...REPORT_KINDS])

const HEAD = {
  id: Id(),
  kind: Kind,
  domain: Type.String(),
  org_name: Type.String({ description: 'Who reports.' }),
  report_id: Type.String({ description: 'As the reporter calls it.' }),
  begin_at: Moment(),
  end_at: Moment(),
  received_at: Moment(),
  summary: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'dmarc: the published policy, and messages in all, passed, quarantined and rejected. tlsrpt: the policy, and ' +
      'sessions that succeeded and failed.',
  }),
}

const ReportHeadSchema = Type.Object(HEAD, { title: 'DomainReportSummary' })
const ReportSchema = Type.Object(
  {
    ...HEAD,
    records: Type.Array(Fields, {
      description: 'dmarc: one for each source; tlsrpt: one for each kind of failure. At most 1,000.',
    }),
  },
  { title: 'DomainReport' },
)

/** @param slowReader for what may take long: the list */
export function reportRoutes(reader: Queries, slowReader = reader): Route[] {
  /** Reports are stored by domain name alone: only who has proved to control the domain may read them. */
  const getVerifiedDomain = async (workspaceId: string, id: string): Promise<Domain> => {
    const domain = await findDomain(reader, workspaceId, id)
    if (!domain) throw new AppError('not_found', 'no such domain')
    if (domain.verifiedAt === null)
      throw new AppError('domain_invalid', `${domain.domain} is not verified; verify it to read its reports`)
    return domain
  }
  return [
    listRoute({
      method: 'GET',
      path: '/domains/:id/reports',
      access: 'domains:read',
      operationId: 'listDomainReports',
      chapter: 'Domains',
      summary: 'What other systems report about mail in this domain, latest first.',
      description:
        'DMARC aggregate reports (RFC 7489) and TLS reports (RFC 8460) that came to `dmarc@` and `tlsrpt@` of the ' +
        "appliance's return path domain. They are kept as they came: anybody can send one. since is held against the end of " +
        'the time that a report is about. A domain of the sandbox has none. Only a verified domain shows its reports: until it is verified, and after it ' +
        'has lost its verification, the answer is 403 `domain_invalid`.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      query: Type.Object(
        {
          ...pageQuery,
          kind: Type.Optional(Kind),
          ...sinceQuery,
        },
        { additionalProperties: false },
      ),
      item: ReportHeadSchema,
      errors: ['not_found', 'domain_invalid'],
      async handle({ principal, params, query }, page) {
        const { domain, isSandbox } = await getVerifiedDomain(principal.workspaceId, params.id)
        const filter = {
          ...given({ kind: query.kind }),
          ...readTimeRange(query),
        }
        if (isSandbox) return { items: [], total: 0 }
        const { items, total } = await listReports(slowReader, domain, filter, page)
        return { items: items.map(headToApi), total }
      },
    }),
    route({
      method: 'GET',
      path: '/domains/:id/reports/:reportId',
      access: 'domains:read',
      operationId: 'getDomainReport',
      chapter: 'Domains',
      summary: 'One report with its records.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }), reportId: Type.String({ maxLength: 64 }) }),
      response: ReportSchema,
      errors: ['not_found', 'domain_invalid'],
      async handle({ principal, params }) {
        const { domain, isSandbox } = await getVerifiedDomain(principal.workspaceId, params.id)
        const report =
          isUuid(params.reportId) && !isSandbox
            ? await findReport(reader, domain, params.reportId.toLowerCase())
            : undefined
        if (!report) throw new AppError('not_found', 'no such report')
        return { ...headToApi(report), records: report.records.map(record => ({ ...record })) }
      },
    }),
  ]
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
    summary: { ...report.summary },
  }
}
