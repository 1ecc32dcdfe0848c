/**
 * Parses feedback reports: who complained, and about what.
 *
 * Checked before all other kinds of returned mail. Returns undefined if the mail is not a report; a redacted recipient is the empty string.
 * Standards: RFC 5965 (ARF), RFC 6591 (auth-failure), RFC 6590 (redaction); also Microsoft JMRP (the message in a multipart/mixed),
 * plain-text reports, and unsubscribe mails sent by mail clients.
 */
import { given } from '../../core/given.js'
import { readHeaderSection, readMessageHeader, type HeaderSection } from '../mime/header-fields.js'
import type { MimeMessage, MimePart } from './mime-part.js'
import { readAddress, readAddressList } from './recipient-address.js'
import type { ReturnedRecipient } from './returned-mail.js'
import { isOriginalPart } from './returned-original.js'

const MAX_RECIPIENTS = 100

export interface FeedbackReport {
  readonly form: string
  readonly recipients: readonly ReturnedRecipient[]
  readonly envelopeId?: string
  readonly originalSender?: string
}

/** RFC 5965 §7.3 and its registry, RFC 6591 §3.1, and common variants. */
const TYPES: Readonly<Record<string, string>> = {
  abuse: 'abuse',
  complaint: 'abuse',
  spam: 'abuse',
  fraud: 'fraud',
  phishing: 'fraud',
  virus: 'virus',
  'not-spam': 'not-spam',
  'opt-out': 'opt-out',
  'opt-out-list': 'opt-out',
  unsubscribe: 'opt-out',
  'auth-failure': 'auth-failure',
  dmarc: 'auth-failure',
  other: 'other',
}

/** @param original header of the returned message, if any */
export function readFeedbackReport(
  message: MimeMessage,
  original: HeaderSection | undefined,
): FeedbackReport | undefined {
  const report = findReport(message)
  if (report) return fromFields('arf', report, original)
  const { header } = message
  if (isJunkMailReport(message, original))
    return { form: 'jmrp', recipients: [complaint('abuse', recipientsOf(original)[0])] }
  if (isPlainReport(message))
    return { form: 'plain-report', recipients: [complaint(plainType(message), recipientsOf(original)[0])] }
  if (isUnsubscribeMail(message))
    return { form: 'unsubscribe-mail', recipients: [complaint('opt-out', readAddress(header.text('from')))] }
  return undefined
}

/** The machine-readable part; some send it as text. */
function findReport({ type, header, parts }: MimeMessage): HeaderSection | undefined {
  const part = parts.find(one => one.type === 'message/feedback-report')
  if (part) return readHeaderSection(part.text.replace(/^\n+/, ''))
  if (parts.some(one => one.type === 'message/delivery-status')) return undefined
  const isReport = type === 'multipart/report' && /feedback-report/i.test(header.raw('content-type'))
  for (const { text } of parts.filter(one => one.type.startsWith('text/'))) {
    const at = /^feedback-type[ \t]{0,9}:/im.exec(text)?.index
    if (at === undefined) continue
    // Fields before it belong to the report too.
    const start = text.lastIndexOf('\n\n', at)
    const end = text.indexOf('\n\n', at)
    return readHeaderSection(text.slice(start < 0 ? 0 : start + 2, end < 0 ? undefined : end))
  }
  return isReport ? readHeaderSection('') : undefined
}

function fromFields(
  form: string,
  report: HeaderSection,
  original: HeaderSection | undefined,
): FeedbackReport {
  const type = typeOf(report)
  const stated = ['original-rcpt-to', 'removal-recipient', 'redacted-address']
    .flatMap(name => report.all(name))
    .flatMap(value => readAddressList(value, MAX_RECIPIENTS))
    .filter(address => !isRedacted(address))
  const unique = [...new Set(stated)].slice(0, MAX_RECIPIENTS)
  const recipients = unique.length > 0 ? unique : [recipientsOf(original)[0]]
  const envelopeId = report.raw('original-envelope-id')
  const originalSender = readAddress(report.raw('original-mail-from'))
  return {
    form,
    recipients: recipients.map(recipient => complaint(type, recipient)),
    ...(envelopeId === '' ? {} : { envelopeId }),
    ...given({ originalSender }),
  }
}

function typeOf(report: HeaderSection): string {
  const stated = report.raw('feedback-type').trim().toLowerCase()
  if (stated === '') return report.has('auth-failure') ? 'auth-failure' : 'abuse'
  return TYPES[stated] ?? 'other'
}

function complaint(feedbackType: string, recipient: string | undefined): ReturnedRecipient {
  return { recipient: recipient ?? '', feedbackType }
}

/** The original recipients, best source first. */
function recipientsOf(original: HeaderSection | undefined): readonly string[] {
  if (!original) return []
  return ['x-hmxmroriginalrecipient', 'x-original-to', 'delivered-to', 'to']
    .flatMap(name => readAddressList(original.text(name), 10))
    .filter(address => !isRedacted(address))
}

/** RFC 6590: a fixed word, or a keyed hash of the local part. */
function isRedacted(address: string): boolean {
  const local = address.slice(0, address.lastIndexOf('@'))
  return (
    /^(?:redacted|hashed|hidden|removed|undisclosed(?:[- ]recipients?)?|x{3,}|\*+)$/i.test(local) ||
    /^[0-9a-f]{32,}$/i.test(local)
  )
}

/** The returned message without a report; the recipient is in a header field. */
function isJunkMailReport({ header, parts }: MimeMessage, original: HeaderSection | undefined): boolean {
  if (!original || !parts.some(isOriginalPart)) return false
  const isMicrosoft = /@(?:[\w.-]{0,60}\.)?(?:hotmail|outlook|live|microsoft)\.com\b/i.test(
    header.text('from'),
  )
  return (
    original.has('x-hmxmroriginalrecipient') ||
    (isMicrosoft && /^\s{0,9}complaint about message/i.test(header.text('subject')))
  )
}

const PLAIN_REPORT =
  /this is an? (?:[\w-]{1,30} ){0,2}(?:e-?mail )?(?:abuse|spam|opt-out|complaint|fraud) (?:report|complaint)|reported (?:this|your|the following) (?:e-?mail|message) as (?:spam|junk|abuse)|marked (?:this|your) (?:e-?mail|message) as (?:spam|junk)/i

function isPlainReport({ parts }: MimeMessage): boolean {
  const text = firstText(parts)
  return PLAIN_REPORT.test(text.slice(0, 8_000))
}

function plainType({ parts }: MimeMessage): string {
  return /opt-out (?:report|complaint)/i.test(firstText(parts).slice(0, 8_000)) ? 'opt-out' : 'abuse'
}

/** Sent by mail clients to the address in List-Unsubscribe (RFC 2369 §3.2). */
function isUnsubscribeMail({ header, parts }: MimeMessage): boolean {
  return (
    /^\s{0,9}unsubscribe\b/i.test(header.text('subject')) &&
    (header.has('auto-submitted') || /unsubscribe@|unsubscribe\+|opt-?out/i.test(header.raw('to'))) &&
    /sent (?:this|the) (?:e-?mail|message) to unsubscribe|^\s{0,200}(?:unsubscribe)?\s{0,200}$/i.test(
      firstText(parts).slice(0, 2_000),
    )
  )
}

function firstText(parts: readonly MimePart[]): string {
  return parts.find(part => part.type.startsWith('text/'))?.text ?? ''
}

export function headerOfOriginalPart(parts: readonly MimePart[]): HeaderSection | undefined {
  const part = parts.find(isOriginalPart)
  return part === undefined ? undefined : readMessageHeader(part.text)
}
