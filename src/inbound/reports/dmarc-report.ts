/**
 * Parses DMARC aggregate reports: what a receiver saw of mail from a domain (RFC 7489 §7.2, appendix C).
 *
 * The XML scanner is our own: general parsers store attributes, entities and runs of `]` before discarding them, and a
 * few KB of these can exhaust the thread's memory. It works in one pass, bounded by the length of the text. A document
 * type is rejected, and with it all declared entities; only the predefined ones are decoded. Namespaces and attributes
 * are ignored. Standard: XML 1.0 §2.4, §2.7, §3.1, §4.1. Throws an Error that says what is wrong with the report.
 */
import type { ParsedReport } from '../parser-protocol.js'
import {
  requiredText,
  MAX_RECORDS,
  reportCount,
  reportDomain,
  reportMoment,
  reportText,
} from './report-fields.js'

/** Reports nest 6 deep. */
const MAX_DEPTH = 12
const MAX_TEXT = 1_000
const MAX_RESULTS = 10

type Values = Map<string, string>

interface RecordParts {
  readonly values: Values
  readonly dkim: Values[]
  readonly spf: Values[]
}

/** @throws Error */
export function readDmarcReport(text: string): ParsedReport {
  const reading = new DmarcHandler()
  scanXml(text, reading)
  return reading.finish()
}

class DmarcHandler implements XmlHandler {
  /** Paths of the open elements below the root, which is `feedback`. */
  private readonly paths: string[] = []
  private text = ''
  /** Values outside records, by path below `feedback`. */
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
    if (this.paths.length > MAX_DEPTH) throw new Error('XML nested too deep')
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
    const domain = reportDomain(value('policy_published/domain'))
    return {
      kind: 'dmarc',
      domain,
      orgName: requiredText(value('report_metadata/org_name'), 'org_name'),
      reportId: requiredText(value('report_metadata/report_id'), 'report_id'),
      beginAt: seconds('report_metadata/date_range/begin'),
      endAt: seconds('report_metadata/date_range/end'),
      summary: {
        domain,
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
    if (this.records.length >= MAX_RECORDS) return
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

export interface XmlHandler {
  /** @param name with its namespace prefix */
  open(name: string): void
  /** Decoded and truncated; may be called several times for one text. */
  addText(text: string): void
  close(): void
}

/** A report of 10 MB has 400,000. */
const MAX_ELEMENTS = 500_000
const MAX_TAG = 4_096
/** Text is truncated here; no value of a report is longer. */
const MAX_TEXT_OCTETS = 4_096

const NAME = /^[\p{L}_:][\p{L}\p{N}_:.\u00b7-]{0,99}$/u
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi
const KNOWN: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** @throws Error */
export function scanXml(text: string, handler: XmlHandler): void {
  const open: string[] = []
  let elements = 0
  let at = text.startsWith('\ufeff') ? 1 : 0
  while (at < text.length) {
    const start = text.indexOf('<', at)
    const end = start < 0 ? text.length : start
    if (end > at && open.length > 0)
      handler.addText(decode(text.slice(at, Math.min(end, at + MAX_TEXT_OCTETS))))
    if (start < 0) break
    if (text.startsWith('<!--', start)) at = endOf(text, '-->', start + 4)
    else if (text.startsWith('<?', start)) at = endOf(text, '?>', start + 2)
    else if (text.startsWith('<![CDATA[', start)) {
      at = endOf(text, ']]>', start + 9)
      if (open.length > 0)
        handler.addText(text.slice(start + 9, Math.min(at - 3, start + 9 + MAX_TEXT_OCTETS)))
    } else if (text.startsWith('<!', start)) {
      throw new Error('XML has a document type declaration')
    } else if (text.startsWith('</', start)) {
      at = endOf(text, '>', start + 2)
      if (at - start > MAX_TAG || text.slice(start + 2, at - 1).trimEnd() !== open.pop()) throw damaged()
      handler.close()
    } else {
      at = endOfTag(text, start + 1)
      const isEmpty = text[at - 2] === '/'
      const name = nameIn(text.slice(start + 1, isEmpty ? at - 2 : at - 1))
      if (open.length === 0 && elements > 0) throw damaged()
      elements += 1
      if (elements > MAX_ELEMENTS) throw new Error('XML has too many elements')
      handler.open(name)
      if (isEmpty) handler.close()
      else open.push(name)
    }
  }
  if (open.length > 0 || elements === 0) throw damaged()
}

/** The offset behind `mark`. @throws Error if it is missing, so that nothing is searched to the end twice */
function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  if (at < 0) throw damaged()
  return at + mark.length
}

/** Attribute values may contain `>`. */
function endOfTag(text: string, from: number): number {
  const last = Math.min(text.length, from + MAX_TAG)
  let quote = ''
  for (let at = from; at < last; at += 1) {
    const char = text.charAt(at)
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '>') return at + 1
    else if (char === '"' || char === "'") quote = char
    else if (char === '<') break
  }
  throw damaged()
}

function nameIn(tag: string): string {
  const end = tag.search(/\s/)
  const name = end < 0 ? tag : tag.slice(0, end)
  if (!NAME.test(name)) throw damaged()
  return name
}

/** Unknown entities are kept: some reporters write a bare `&`. */
function decode(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(ENTITY, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return KNOWN[name.toLowerCase()] ?? whole
    const code = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

function damaged(): Error {
  return new Error('malformed XML')
}
