/**
 * SQL of DMARC aggregate reports (RFC 7489 §7.2) and TLS reports (RFC 8460).
 *
 * Senders are not authenticated, so a report is stored only for a domain that exists here, once, and up to a daily limit.
 */
import type { Queries } from '../../db/database.js'
import { pageWithTotal } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'

export const REPORT_KINDS = ['dmarc', 'tlsrpt'] as const
export type ReportKind = (typeof REPORT_KINDS)[number]

interface DomainReportRow {
  id: string
  kind: ReportKind
  domain: string
  org_name: string
  report_id: string
  begin_at: number
  end_at: number
  received_at: number
  summary: string
  records: string
}

declare module '../../db/tables.js' {
  interface Tables {
    domain_reports: DomainReportRow
  }
}

/** JSON values of bounded size, with the API's field names. */
export type ReportFields = Readonly<Record<string, unknown>>

export interface DomainReport {
  readonly id: string
  readonly kind: ReportKind
  /** A-labels, lower case. */
  readonly domain: string
  readonly orgName: string
  /** The reporter's id, unique per reporter. */
  readonly reportId: string
  /** Reported period, ms since epoch UTC. */
  readonly beginAt: number
  readonly endAt: number
  readonly receivedAt: number
  readonly summary: ReportFields
  readonly records: readonly ReportFields[]
}

export interface NewDomainReport extends Omit<DomainReport, 'records'> {
  readonly recordsJson: string
}

/** Per domain, kind and day; the busiest domains have a few hundred reporters. */
const MAX_PER_DAY = 500
const DAY_MS = 86_400_000

/** `known`: already stored. `too_many`: over the daily limit. */
export type StoreVerdict = 'stored' | 'known' | 'too_many'

export async function insertReport(db: Queries, report: NewDomainReport): Promise<StoreVerdict> {
  const { received } = await db
    .selectFrom('domain_reports')
    .select(e => e.fn.countAll<number>().as('received'))
    .where('domain', '=', report.domain)
    .where('kind', '=', report.kind)
    .where('received_at', '>', report.receivedAt - DAY_MS)
    .executeTakeFirstOrThrow()
  if (received >= MAX_PER_DAY) return 'too_many'
  const result = await db
    .insertInto('domain_reports')
    .values({
      id: report.id,
      kind: report.kind,
      domain: report.domain,
      org_name: report.orgName,
      report_id: report.reportId,
      begin_at: report.beginAt,
      end_at: report.endAt,
      received_at: report.receivedAt,
      summary: JSON.stringify(report.summary),
      records: report.recordsJson,
    })
    .onConflict(conflict => conflict.columns(['domain', 'kind', 'org_name', 'report_id']).doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n ? 'stored' : 'known'
}

/** Which of these domains exist here, sandboxes excluded. */
export async function domainsPresent(db: Queries, domains: readonly string[]): Promise<Set<string>> {
  if (domains.length === 0) return new Set()
  const rows = await db
    .selectFrom('domains')
    .select('domain')
    .distinct()
    .where('domain', 'in', domains)
    .where('is_sandbox', '=', 0)
    .where('removed_at', 'is', null)
    .execute()
  return new Set(rows.map(row => row.domain))
}

export interface ReportFilter {
  readonly kind?: ReportKind
  /** Only periods that end after this, ms since epoch UTC. */
  readonly since?: number
}

/** Latest period first; without records. */
export async function listReports(
  db: Queries,
  domain: string,
  filter: ReportFilter,
  page: Page,
): Promise<Listing<Omit<DomainReport, 'records'>>> {
  const all = matching(db, domain, filter)
  const newest = all
    .select(['id', 'kind', 'domain', 'org_name', 'report_id', 'begin_at', 'end_at', 'received_at', 'summary'])
    .orderBy('begin_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
  return pageWithTotal(all, newest, headFromRow)
}

/**
 * A page of reports whose period begins within a range, latest first.
 *
 * @param before the last report of the previous page
 * @returns also the size of their records, in characters
 */
export async function pageReports(
  db: Queries,
  domain: string,
  { kind, since, until }: { readonly kind: ReportKind; readonly since: number; readonly until: number },
  limit: number,
  before: Pick<DomainReport, 'beginAt' | 'id'> | undefined,
): Promise<{ readonly report: DomainReport; readonly size: number }[]> {
  let query = db
    .selectFrom('domain_reports')
    .selectAll()
    .where('domain', '=', domain)
    .where('kind', '=', kind)
    .where('begin_at', '>=', since)
    .where('begin_at', '<', until)
  if (before)
    query = query.where(e =>
      e.or([
        e('begin_at', '<', before.beginAt),
        e.and([e('begin_at', '=', before.beginAt), e('id', '<', before.id)]),
      ]),
    )
  const rows = await query.orderBy('begin_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
  return rows.map(row => ({ report: reportFromRow(row), size: row.records.length }))
}

export async function findReport(db: Queries, domain: string, id: string): Promise<DomainReport | undefined> {
  const row = await db
    .selectFrom('domain_reports')
    .selectAll()
    .where('id', '=', id)
    .where('domain', '=', domain)
    .executeTakeFirst()
  return row && reportFromRow(row)
}

export async function deleteReportsBefore(
  db: Queries,
  receivedBefore: number,
  limit: number,
): Promise<number> {
  const rows = await db
    .selectFrom('domain_reports')
    .select('id')
    .where('received_at', '<', receivedBefore)
    .orderBy('received_at')
    .limit(limit)
    .execute()
  if (rows.length === 0) return 0
  const ids = rows.map(row => row.id)
  await db.deleteFrom('domain_reports').where('id', 'in', ids).execute()
  return rows.length
}

function matching(db: Queries, domain: string, { kind, since }: ReportFilter) {
  let query = db.selectFrom('domain_reports').where('domain', '=', domain)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (since !== undefined) query = query.where('end_at', '>', since)
  return query
}

function reportFromRow(row: DomainReportRow): DomainReport {
  return { ...headFromRow(row), records: JSON.parse(row.records) as ReportFields[] }
}

function headFromRow(row: Omit<DomainReportRow, 'records'>): Omit<DomainReport, 'records'> {
  return {
    id: row.id,
    kind: row.kind,
    domain: row.domain,
    orgName: row.org_name,
    reportId: row.report_id,
    beginAt: row.begin_at,
    endAt: row.end_at,
    receivedAt: row.received_at,
    summary: JSON.parse(row.summary) as ReportFields,
  }
}
