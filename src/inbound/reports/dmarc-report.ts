/**
 * DMARC aggregate reports: what a receiver saw of mail in a domain's name.
 *
 * Called in the reading thread. Told tag by tag, so that only what is kept takes memory. Pure.
 * Standards: RFC 7489 §7.2 and appendix C.
 * Fails: throws a plain Error that says what is wrong.
 */
import type { ParsedReport } from '../reading/parser-protocol.js'
import {
  requiredText,
  MOST_RECORDS,
  reportCount,
  reportDomain,
  reportMoment,
  reportText,
} from './report-fields.js'
import { scanXml, type XmlHandler } from './scan-xml.js'

/** No report nests deeper than 6. */
const MAX_DEPTH = 12
const MAX_TEXT = 1_000
/** DKIM signatures and SPF results of one record. */
const MAX_RESULTS = 10

type Values = Map<string, string>

interface RecordParts {
  readonly values: Values
  readonly dkim: Values[]
  readonly spf: Values[]
}

/** @throws Error */
export function readDmarcReport(octets: Buffer): ParsedReport {
  const reading = new DmarcReading()
  scanXml(octets.toString('utf8'), reading)
  return reading.finish()
}

class DmarcReading implements XmlHandler {
  /** Of the open elements: each one's path below the root, which is `feedback`. */
  private readonly paths: string[] = []
  private text = ''
  /** Everything outside records, by path below `feedback`. */
  private readonly values: Values = new Map()
  private record: RecordParts | undefined
  private readonly records: Readonly<Record<string, unknown>>[] = []
  private readonly totals = { messages: 0, passed: 0, quarantined: 0, rejected: 0 }
  private recordCount = 0

  open(name: string): void {
    const local = name.slice(name.indexOf(':') + 1)
    const above = this.paths.at(-1)
    const here = above === undefined ? '' : above === '' ? local : `${above}/${local}`
    this.paths.push(here)
    if (this.paths.length > MAX_DEPTH) throw new Error('its XML is nested too deep')
    this.text = ''
    if (here === 'record') this.record = { values: new Map(), dkim: [], spf: [] }
    const results = this.resultsAt(here)
    if (results && results.length < MAX_RESULTS) results.push(new Map())
  }

  addText(text: string): void {
    if (this.text.length < MAX_TEXT) this.text += text.slice(0, MAX_TEXT)
  }

  close(): void {
    const here = this.paths.pop() ?? ''
    this.keep(here, this.text.trim())
    if (here === 'record') this.finishRecord()
    this.text = ''
  }

  finish(): ParsedReport {
    const value = (path: string) => this.values.get(path)
    const seconds = (path: string) => reportMoment(reportCount(value(path)) * 1_000)
    return {
      kind: 'dmarc',
      domain: reportDomain(value('policy_published/domain')),
      orgName: requiredText(value('report_metadata/org_name'), 'org_name'),
      reportId: requiredText(value('report_metadata/report_id'), 'report_id'),
      beginAt: seconds('report_metadata/date_range/begin'),
      endAt: seconds('report_metadata/date_range/end'),
      summary: {
        policy: reportText(value('policy_published/p')),
        subdomain_policy: reportText(value('policy_published/sp')),
        dkim_alignment: reportText(value('policy_published/adkim')),
        spf_alignment: reportText(value('policy_published/aspf')),
        contact: reportText(value('report_metadata/email')),
        ...this.totals,
        records: this.recordCount,
        is_truncated: this.recordCount > this.records.length,
      },
      records: this.records,
    }
  }

  private keep(here: string, text: string): void {
    if (!this.record) {
      if (this.values.size < 100) this.values.set(here, text)
      return
    }
    const [, kind, field] = /^record\/auth_results\/(dkim|spf)\/(\w{1,20})$/.exec(here) ?? []
    if (field === undefined) {
      if (this.record.values.size < 50) this.record.values.set(here, text)
    } else this.record[kind === 'dkim' ? 'dkim' : 'spf'].at(-1)?.set(field, text)
  }

  private finishRecord(): void {
    if (!this.record) return
    const { values, dkim, spf } = this.record
    this.record = undefined
    this.recordCount += 1
    const value = (path: string) => reportText(values.get(`record/${path}`))
    const count = reportCount(values.get('record/row/count'))
    const disposition = value('row/policy_evaluated/disposition')
    const evaluated = { dkim: value('row/policy_evaluated/dkim'), spf: value('row/policy_evaluated/spf') }
    this.totals.messages += count
    if (evaluated.dkim === 'pass' || evaluated.spf === 'pass') this.totals.passed += count
    if (disposition === 'quarantine') this.totals.quarantined += count
    if (disposition === 'reject') this.totals.rejected += count
    if (this.records.length >= MOST_RECORDS) return
    this.records.push({
      source_ip: value('row/source_ip'),
      count,
      disposition,
      ...evaluated,
      header_from: value('identifiers/header_from'),
      envelope_from: value('identifiers/envelope_from'),
      dkim_results: dkim.map(result => resultOf(result, ['domain', 'selector', 'result'])),
      spf_results: spf.map(result => resultOf(result, ['domain', 'scope', 'result'])),
    })
  }

  private resultsAt(here: string): Values[] | undefined {
    if (here === 'record/auth_results/dkim') return this.record?.dkim
    return here === 'record/auth_results/spf' ? this.record?.spf : undefined
  }
}

function resultOf(values: Values, fields: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(fields.map(field => [field, reportText(values.get(field))]))
}
