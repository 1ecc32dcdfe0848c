/**
 * Parses TLS reports: what a sender saw of TLS on the way to a domain's mail hosts (RFC 8460 §4).
 *
 * The JSON is checked before it is parsed: a few KB packed can contain millions of empty values, each an object in
 * memory. Throws an Error that says what is wrong with the report.
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

/** Reporters send one report per policy domain. */
const MAX_POLICIES = 20
const MAX_STRINGS = 20

type Fields = Readonly<Record<string, unknown>>

/**
 * @returns one report per policy domain
 * @throws Error
 */
export function readTlsReport(text: string): ParsedReport[] {
  const report = fieldsOf(parseJson(text))
  const range = fieldsOf(report['date-range'])
  const head = {
    kind: 'tlsrpt' as const,
    orgName: requiredText(report['organization-name'], 'organization-name'),
    reportId: requiredText(report['report-id'], 'report-id'),
    beginAt: reportMoment(Date.parse(reportText(range['start-datetime']))),
    endAt: reportMoment(Date.parse(reportText(range['end-datetime']))),
  }
  const byDomain = new Map<string, Fields[]>()
  for (const entry of listOf(report['policies']).slice(0, MAX_POLICIES)) {
    const domain = reportDomain(fieldsOf(fieldsOf(entry)['policy'])['policy-domain'])
    byDomain.set(domain, [...(byDomain.get(domain) ?? []), fieldsOf(entry)])
  }
  if (byDomain.size === 0) throw new Error('missing policies')
  const contact = reportText(report['contact-info'])
  return [...byDomain].map(([domain, entries]) => ({ ...head, domain, ...summarise(entries, contact) }))
}

function summarise(entries: readonly Fields[], contact: string): Pick<ParsedReport, 'summary' | 'records'> {
  const totals = { succeeded: 0, failed: 0 }
  const policies: Fields[] = []
  const records: Fields[] = []
  let failures = 0
  for (const entry of entries) {
    const summary = fieldsOf(entry['summary'])
    const policy = fieldsOf(entry['policy'])
    totals.succeeded += reportCount(summary['total-successful-session-count'])
    totals.failed += reportCount(summary['total-failure-session-count'])
    policies.push({
      type: reportText(policy['policy-type']),
      strings: textsOf(policy['policy-string']),
      mx_hosts: textsOf(policy['mx-host']),
    })
    const details = listOf(entry['failure-details'])
    failures += details.length
    for (const detail of details.slice(0, MAX_RECORDS - records.length))
      records.push(failureOf(fieldsOf(detail)))
  }
  return {
    summary: { policies, contact, ...totals, records: failures, is_truncated: failures > records.length },
    records,
  }
}

function failureOf(detail: Fields): Fields {
  return {
    result_type: reportText(detail['result-type']),
    sending_mta_ip: reportText(detail['sending-mta-ip']),
    receiving_ip: reportText(detail['receiving-ip']),
    receiving_mx_hostname: reportText(detail['receiving-mx-hostname']),
    failed_sessions: reportCount(detail['failed-session-count']),
    reason_code: reportText(detail['failure-reason-code']),
    additional_information: reportText(detail['additional-information']),
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Some reporters send a string instead of a list. */
function textsOf(value: unknown): string[] {
  return (typeof value === 'string' ? [value] : listOf(value)).slice(0, MAX_STRINGS).map(reportText)
}

/** A report of a large sender, with thousands of failures, has about ten thousand. */
const MAX_VALUES = 200_000
/** Reports nest 6 deep. */
const MAX_DEPTH = 20

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** @throws Error */
export function parseJson(text: string): unknown {
  checkBounds(text)
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch (error) {
    throw new Error('malformed JSON', { cause: error })
  }
}

/** Counts values by the separators around them; does not check the syntax. */
function checkBounds(text: string): void {
  let values = 0
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at)
        break
      case 0x5b: // [
      case 0x7b: // {
        depth += 1
        values += 1
        if (depth > MAX_DEPTH) throw new Error('JSON nested too deep')
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1
        break
      case 0x2c: // ,
        values += 1
        break
    }
    if (values > MAX_VALUES) throw new Error('JSON has too many values')
  }
}

/** Offset of the closing quote, or the end of the text. */
function endOfString(text: string, quote: number): number {
  for (let at = text.indexOf('"', quote + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return at
  }
  return text.length
}
