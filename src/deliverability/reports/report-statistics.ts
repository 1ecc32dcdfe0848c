/**
 * Totals of DMARC or TLS reports about a domain: by day, by source of mail, by reporter.
 *
 * Reports come from anybody, so their values are checked again here, and the work is bounded by the octets of their records. Unauthenticated
 * reports are added last, and counted separately too. Fails: never.
 */
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { nextTurn } from '../../world/time/clock.js'
import { pageReports, type DomainReport, type ReportFields, type ReportKind } from './report-store.js'

export interface ReportPeriod {
  readonly kind: ReportKind
  /** Ms since epoch UTC; of the beginning of reported periods. */
  readonly since: number
  readonly until: number
}

/** Mails (DMARC) or sessions (TLS). */
interface Counts {
  passed: number
  failed: number
}

/** Mail that came from one address. */
export interface SourceCounts extends Counts {
  readonly sourceIp: string
  dkimPassed: number
  spfPassed: number
  quarantined: number
  rejected: number
  /** Domains of From, at most ten. */
  readonly headerFrom: Set<string>
}

/** Sessions that failed alike. */
export interface FailureCounts {
  readonly resultType: string
  readonly mxHost: string
  sessions: number
}

interface ReporterCounts extends Counts {
  readonly name: string
  /** Null: not authenticated. */
  readonly authenticatedAs: string | null
  reports: number
}

export interface ReportStatistics {
  readonly reports: number
  /** There are more reports, or more sources, than are counted here. */
  readonly isTruncated: boolean
  readonly totals: Counts & { quarantined: number; rejected: number }
  /** Part of the totals that anybody may have sent. */
  readonly unauthenticated: Counts & { reports: number }
  /** Every day of the period, YYYY-MM-DD in UTC. */
  readonly days: readonly (Counts & { readonly date: string })[]
  /** DMARC: most mail first, at most a hundred. */
  readonly sources: readonly SourceCounts[]
  /** TLS: most sessions first, at most a hundred. */
  readonly failures: readonly FailureCounts[]
  /** Most reports first, at most twenty. */
  readonly reporters: readonly ReporterCounts[]
}

const DAY_MS = 86_400_000
const REPORTS_AT_ONCE = 50
/** Characters of records read for one answer; parsing them takes about 100 ms. */
const MAX_CHARACTERS = 8_000_000
const MAX_GROUPS = 10_000
const SHOWN_GROUPS = 100
const SHOWN_REPORTERS = 20
const SHOWN_DOMAINS = 10

/**
 * If there are too many, those that are authenticated count first, the newest of them first.
 *
 * @param domain undefined: one that has no reports
 */
export async function reportStatistics(
  db: Queries,
  domain: string | undefined,
  period: ReportPeriod,
): Promise<ReportStatistics> {
  const sum = new Sum(period)
  if (domain === undefined) return sum.finish(false)
  let characters = 0
  for (const isAuthenticated of [true, false]) {
    let before: DomainReport | undefined
    for (;;) {
      const page = await pageReports(db, domain, { ...period, isAuthenticated }, REPORTS_AT_ONCE, before)
      for (const { report, size } of page) {
        characters += size
        if (characters > MAX_CHARACTERS) return sum.finish(true)
        sum.add(report)
      }
      if (page.length < REPORTS_AT_ONCE) break
      before = page.at(-1)?.report
      await nextTurn()
    }
  }
  return sum.finish(false)
}

class Sum {
  private reports = 0
  private isFull = false
  private readonly totals = { passed: 0, failed: 0, quarantined: 0, rejected: 0 }
  private readonly unauthenticated = { reports: 0, passed: 0, failed: 0 }
  private readonly days = new Map<string, Counts>()
  private readonly sources = new Map<string, SourceCounts>()
  private readonly failures = new Map<string, FailureCounts>()
  private readonly reporters = new Map<string, ReporterCounts>()

  constructor({ since, until }: ReportPeriod) {
    for (let day = dayOf(since); day < until; day += DAY_MS)
      this.days.set(dateOf(day), { passed: 0, failed: 0 })
  }

  add({ kind, beginAt, orgName, authenticatedAs, summary, records }: DomainReport): void {
    this.reports += 1
    const counts = kind === 'dmarc' ? dmarcCounts(summary) : tlsCounts(summary)
    addTo(this.totals, counts)
    if (authenticatedAs === null) {
      this.unauthenticated.reports += 1
      addTo(this.unauthenticated, counts)
    }
    const day = this.days.get(dateOf(beginAt))
    if (day) addTo(day, counts)
    this.totals.quarantined += numberOf(summary['quarantined'])
    this.totals.rejected += numberOf(summary['rejected'])
    const reporter = this.groupIn(this.reporters, `${authenticatedAs ?? ''} ${orgName}`, () => ({
      name: orgName,
      authenticatedAs,
      reports: 0,
      passed: 0,
      failed: 0,
    }))
    if (reporter) {
      reporter.reports += 1
      addTo(reporter, counts)
    }
    for (const record of records)
      if (kind === 'dmarc') this.addSource(record)
      else this.addFailure(record)
  }

  finish(isTruncated: boolean): ReportStatistics {
    const most = <T>(groups: Map<string, T>, weight: (one: T) => number, shown: number) =>
      [...groups.values()].sort((a, b) => weight(b) - weight(a)).slice(0, shown)
    return {
      reports: this.reports,
      isTruncated:
        isTruncated ||
        this.isFull ||
        Math.max(this.sources.size, this.failures.size) > SHOWN_GROUPS ||
        this.reporters.size > SHOWN_REPORTERS,
      totals: this.totals,
      unauthenticated: this.unauthenticated,
      days: [...this.days].map(([date, counts]) => ({ date, ...counts })),
      sources: most(this.sources, ({ passed, failed }) => passed + failed, SHOWN_GROUPS),
      failures: most(this.failures, ({ sessions }) => sessions, SHOWN_GROUPS),
      reporters: most(this.reporters, ({ reports }) => reports, SHOWN_REPORTERS),
    }
  }

  private addSource(record: ReportFields): void {
    const sourceIp = textOf(record['source_ip'])
    const count = numberOf(record['count'])
    const source = this.groupIn(this.sources, sourceIp, () => ({
      sourceIp,
      passed: 0,
      failed: 0,
      dkimPassed: 0,
      spfPassed: 0,
      quarantined: 0,
      rejected: 0,
      headerFrom: new Set<string>(),
    }))
    if (!source) return
    const [isSigned, isSent] = [record['dkim'] === 'pass', record['spf'] === 'pass']
    source[isSigned || isSent ? 'passed' : 'failed'] += count
    if (isSigned) source.dkimPassed += count
    if (isSent) source.spfPassed += count
    if (record['disposition'] === 'quarantine') source.quarantined += count
    if (record['disposition'] === 'reject') source.rejected += count
    const from = textOf(record['header_from'])
    if (from !== '' && source.headerFrom.size < SHOWN_DOMAINS) source.headerFrom.add(from)
  }

  private addFailure(record: ReportFields): void {
    const resultType = textOf(record['result_type'])
    const mxHost = textOf(record['receiving_mx_hostname'])
    const failure = this.groupIn(this.failures, `${resultType} ${mxHost}`, () => ({
      resultType,
      mxHost,
      sessions: 0,
    }))
    if (failure) failure.sessions += numberOf(record['failed_sessions'])
  }

  private groupIn<T>(groups: Map<string, T>, key: string, make: () => T): T | undefined {
    const found = groups.get(key)
    if (found) return found
    if (groups.size >= MAX_GROUPS) {
      this.isFull = true
      return undefined
    }
    const made = make()
    groups.set(key, made)
    return made
  }
}

function addTo(sum: Counts, { passed, failed }: Counts): void {
  sum.passed += passed
  sum.failed += failed
}

function dmarcCounts(summary: ReportFields): Counts {
  const passed = numberOf(summary['passed'])
  return { passed, failed: Math.max(0, numberOf(summary['messages']) - passed) }
}

function tlsCounts(summary: ReportFields): Counts {
  return { passed: numberOf(summary['succeeded']), failed: numberOf(summary['failed']) }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Midnight UTC. */
export function dayOf(moment: number): number {
  return Math.floor(moment / DAY_MS) * DAY_MS
}

function dateOf(moment: number): string {
  return isoTime(moment).slice(0, 10)
}
