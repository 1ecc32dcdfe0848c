/**
 * SQL of DMARC aggregate reports (RFC 7489 §7.2) and TLS reports (RFC 8460).
 *
 * Anybody can send one, so a report is stored only for a domain that exists here, once, and up to a daily limit. Reporters that SPF
 * authenticates share that limit fairly, and unauthenticated reports give way to theirs.
 */
import type { Queries } from '../../db/database.js'
import { keysetPageOf } from '../../db/listing.js'
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
  authenticated_as: string | null
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
  /** The domain of the sender that SPF authenticated; null for none. */
  readonly authenticatedAs: string | null
  readonly summary: ReportFields
  readonly records: readonly ReportFields[]
}

export interface NewDomainReport extends Omit<DomainReport, 'records'> {
  readonly recordsJson: string
}

/** Per domain, kind and day; the busiest domains have a few hundred reporters. */
const MAX_PER_DAY = 500
const DAY_MS = 86_400_000

/** `known`: already stored. `too_many`: over the daily limit, or the reporter's share of it. */
export type StoreVerdict = 'stored' | 'known' | 'too_many'

export async function insertReport(db: Queries, report: NewDomainReport): Promise<StoreVerdict> {
  const known = await findStored(db, report)
  if (known) {
    if (known.authenticated_as !== null || report.authenticatedAs === null) return 'known'
    // A forged report used the id of this one.
    await db.deleteFrom('domain_reports').where('id', '=', known.id).execute()
  }
  if (!(await makeRoom(db, report))) return 'too_many'
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
      authenticated_as: report.authenticatedAs,
    })
    .onConflict(conflict => conflict.columns(['domain', 'kind', 'org_name', 'report_id']).doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n ? 'stored' : 'known'
}

function findStored(db: Queries, { domain, kind, orgName, reportId }: NewDomainReport) {
  return db
    .selectFrom('domain_reports')
    .select(['id', 'authenticated_as'])
    .where('domain', '=', domain)
    .where('kind', '=', kind)
    .where('org_name', '=', orgName)
    .where('report_id', '=', reportId)
    .executeTakeFirst()
}

/**
 * Removes a report if the day is full: one that is not authenticated, else one of the reporter with most, provided that it has more than
 * the new one would have.
 *
 * @returns false if the new report has to be refused
 */
async function makeRoom(db: Queries, report: NewDomainReport): Promise<boolean> {
  const ofDay = db
    .selectFrom('domain_reports')
    .where('domain', '=', report.domain)
    .where('kind', '=', report.kind)
    .where('received_at', '>', report.receivedAt - DAY_MS)
  const counts = await ofDay
    .select(['authenticated_as', e => e.fn.countAll<number>().as('reports')])
    .groupBy('authenticated_as')
    .execute()
  const byReporter = new Map<string | null, { reports: number; names: (string | null)[] }>()
  for (const { authenticated_as: name, reports } of counts) {
    const of = byReporter.get(reporterOf(name)) ?? { reports: 0, names: [] }
    byReporter.set(reporterOf(name), { reports: of.reports + reports, names: [...of.names, name] })
  }
  const total = counts.reduce((sum, { reports }) => sum + reports, 0)
  if (total < MAX_PER_DAY) return true
  if (report.authenticatedAs === null) return false
  const own = byReporter.get(reporterOf(report.authenticatedAs))?.reports ?? 0
  const [most] = [...byReporter.values()].sort((a, b) => b.reports - a.reports)
  const hasForged = byReporter.has(null)
  if (!hasForged && (!most || most.reports <= own + 1)) return false
  const { id } = await ofDay
    .select('id')
    .where(e =>
      hasForged ? e('authenticated_as', 'is', null) : e('authenticated_as', 'in', most?.names ?? []),
    )
    .orderBy('received_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow()
  await db.deleteFrom('domain_reports').where('id', '=', id).execute()
  return true
}

/** All subdomains are one reporter; under a country's second-level registry (`co.uk`) a domain has a label more. */
function reporterOf(authenticatedAs: string | null): string | null {
  if (authenticatedAs === null) return null
  const labels = authenticatedAs.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(top.length === 2 && second.length <= 3 ? -3 : -2).join('.')
}

/**
 * The domains here that reports about these domains belong to, sandboxes excluded.
 *
 * Receivers report on a subdomain by its own name, and DMARC aligns it with the domain above it (RFC 7489 §3.1), so a verified domain gets
 * the reports about its subdomains. The nearest verified domain wins: adding a subdomain without proof takes no reports away from its owner.
 *
 * @returns by reported domain; those that belong to none are missing
 */
export async function findReportedDomains(
  db: Queries,
  reported: readonly string[],
): Promise<Map<string, string>> {
  const candidates = [...new Set(reported.flatMap(withParents))]
  if (candidates.length === 0) return new Map()
  const rows = await db
    .selectFrom('domains')
    .select(['domain', 'verified_at'])
    .where('domain', 'in', candidates)
    .where('is_sandbox', '=', 0)
    .where('removed_at', 'is', null)
    .execute()
  const present = new Set(rows.map(row => row.domain))
  const verified = new Set(rows.filter(row => row.verified_at !== null).map(row => row.domain))
  const found = new Map<string, string>()
  for (const domain of reported) {
    const owner =
      withParents(domain).find(name => verified.has(name)) ?? (present.has(domain) ? domain : undefined)
    if (owner !== undefined) found.set(domain, owner)
  }
  return found
}

/** `a.b.example`: itself, `b.example` and `example`. */
function withParents(domain: string): string[] {
  const labels = domain.split('.')
  return labels.map((_, index) => labels.slice(index).join('.'))
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
  const heads = all
    .select(['id', 'kind', 'domain', 'org_name', 'report_id', 'begin_at', 'end_at', 'received_at', 'summary'])
    .select('authenticated_as')
  const order = { columns: ['begin_at', 'id'], kinds: ['number', 'text'], direction: 'desc' } as const
  return keysetPageOf(all, heads, order, page, headFromRow)
}

/**
 * A page of reports whose period begins within a range, latest first: those that are authenticated, or those that are not.
 *
 * @param before the last report of the previous page
 * @returns also the size of their records, in characters
 */
export async function pageReports(
  db: Queries,
  domain: string,
  {
    kind,
    since,
    until,
    isAuthenticated,
  }: {
    readonly kind: ReportKind
    readonly since: number
    readonly until: number
    readonly isAuthenticated: boolean
  },
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
    .where('authenticated_as', isAuthenticated ? 'is not' : 'is', null)
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
    authenticatedAs: row.authenticated_as,
    summary: JSON.parse(row.summary) as ReportFields,
  }
}
