/** Routes of the reports that other systems send about a domain: DMARC aggregate and TLS reports. */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { isUuid } from '../core/ids.js'
import { isoTime, readMoment } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import { pageQuery } from '../http/pagination.js'
import { listRoute, route, type Route } from '../http/route.js'
import { findDomain, type Domain } from './domain-store.js'
import { findReport, listReports, type DomainReport } from './report-store.js'

const Fields = Type.Record(Type.String(), Type.Unknown())

const HEAD = {
  id: Type.String(),
  kind: Type.String({ description: 'dmarc or tlsrpt.' }),
  domain: Type.String(),
  org_name: Type.String({ description: 'Who reports.' }),
  report_id: Type.String({ description: 'As the reporter calls it.' }),
  begin_at: Type.String(),
  end_at: Type.String(),
  received_at: Type.String(),
  summary: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'dmarc: the published policy, and messages in all, passed, quarantined and rejected. tlsrpt: the policy, and ' +
      'sessions that succeeded and failed.',
  }),
}

const ReportHeadSchema = Type.Object(HEAD)
const ReportSchema = Type.Object({
  ...HEAD,
  records: Type.Array(Fields, {
    description: 'dmarc: one for each source; tlsrpt: one for each kind of failure. At most 1,000.',
  }),
})

/** @param slowReader for what may take long: the list */
export function reportRoutes(reader: Queries, slowReader = reader): Route[] {
  const mustFindDomain = async (workspaceId: string, id: string): Promise<Domain> => {
    const domain = await findDomain(reader, workspaceId, id)
    if (!domain) throw new AppError('not_found', 'no such domain')
    return domain
  }
  return [
    listRoute({
      method: 'GET',
      path: '/domains/:id/reports',
      access: 'domains:read',
      summary: 'What other systems report about mail in this domain, latest first.',
      description:
        'DMARC aggregate reports (RFC 7489) and TLS reports (RFC 8460) that came to `dmarc@` and `tlsrpt@` of the ' +
        "appliance's return path domain. They are kept as they came: anybody can send one.",
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      query: Type.Object(
        {
          ...pageQuery,
          kind: Type.Optional(Type.Enum(['dmarc', 'tlsrpt'])),
          since: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601.' })),
        },
        { additionalProperties: false },
      ),
      item: ReportHeadSchema,
      errors: ['not_found'],
      async handle({ principal, params, query }, page) {
        const { domain } = await mustFindDomain(principal.workspaceId, params.id)
        const since = query.since === undefined ? undefined : readMoment(query.since)
        if (query.since !== undefined && since === undefined)
          throw new AppError('validation_error', 'since must be an ISO 8601 date or time', { path: 'since' })
        const filter = {
          ...(query.kind === undefined ? {} : { kind: query.kind }),
          ...(since === undefined ? {} : { since }),
        }
        const { items, total } = await listReports(slowReader, domain, filter, page)
        return { items: items.map(headToApi), total }
      },
    }),
    route({
      method: 'GET',
      path: '/domains/:id/reports/:reportId',
      access: 'domains:read',
      summary: 'One report with its records.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }), reportId: Type.String({ maxLength: 64 }) }),
      response: ReportSchema,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const { domain } = await mustFindDomain(principal.workspaceId, params.id)
        const report = isUuid(params.reportId)
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
