/**
 * Parses the header of a submitted message.
 *
 * Called once per relayed message; the control fields, the editor and the checks of sender and protection work on its result. Never throws:
 * errors are collected in `faults`, and `assertNoFaults` throws the first as AppError `missing_from_email` or `validation_error`, with the
 * field as path.
 * Standards: RFC 5322 §3.6 (fields and their number), §3.6.2 (originator), RFC 6532 (raw UTF-8), RFC 6409 §6.1, §8.
 */
import { AppError, type ErrorCode } from '../../core/errors.js'
import { readAddress, type EmailAddress } from '../address.js'
import { mailboxesOf, readAddressList } from './address-list.js'
import { cutOctets, decodeOctets, hasNonAscii } from '../mime/charset.js'
import { decodeText } from '../mime/encoded-word.js'
import { readFields, unfoldedValue, type HeaderField } from '../mime/header-fields.js'
import { parameter, readMediaType, type MediaType } from '../mime/media-type.js'

export interface RelayedMailbox {
  readonly name?: string
  readonly address: EmailAddress
}

export interface HeaderFault {
  readonly code: ErrorCode
  /** Name of the field, or `header`. */
  readonly path: string
  /** Complete error message for the submitter. */
  readonly message: string
}

export interface RelayedHeader {
  /** The header as a latin1 string: all fields with their CRLF, without the empty line. Empty if too long. */
  readonly text: string
  /** Octets before the body, including the empty line. */
  readonly bodyStart: number
  readonly fields: readonly HeaderField[]
  /** More than one is a fault unless there is a Sender (RFC 5322 §3.6.2). */
  readonly from: readonly RelayedMailbox[]
  readonly sender?: RelayedMailbox
  readonly replyTo: readonly RelayedMailbox[]
  /** Decoded; empty if absent. */
  readonly subject: string
  /** For display: decoded, unfolded, at most 1,000 characters. */
  readonly to: string
  readonly cc: string
  /** As written; absent if missing or empty. */
  readonly date?: string
  /** Without angle brackets; absent if missing or empty. */
  readonly messageId?: string
  /** Defaults to `text/plain` (RFC 2045 §5.2). */
  readonly contentType: MediaType
  readonly hasMimeVersion: boolean
  readonly isEightBit: boolean
  readonly faults: readonly HeaderFault[]
}

/** Octets of the header; enough for a thousand recipients. */
export const MAX_HEADER_OCTETS = 65_536
export const MAX_HEADER_FIELDS = 1_000
const MAX_DISPLAYED = 1_000

/** RFC 5322 §2.2: printable ASCII except the colon. White space before the colon (§4.5) hides a field from some readers. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]+$/
/**
 * RFC 5322 §3.6: at most one each. Filters and mail clients disagree on which of two counts, so repeating one is a way to have one checked
 * and another displayed.
 */
const ONLY_ONCE: ReadonlySet<string> = new Set([
  'from',
  'sender',
  'reply-to',
  'to',
  'cc',
  'date',
  'subject',
  'message-id',
  'in-reply-to',
  'references',
  'content-type',
  'content-transfer-encoding',
])
const NO_TYPE: MediaType = { value: 'text/plain', parameters: [] }

/** @param message CRLF line endings; without an empty line it is all header */
export function readRelayedHeader(message: Buffer): RelayedHeader {
  const { end, bodyStart } = headerEnd(message)
  const faults: HeaderFault[] = []
  let text = ''
  if (end > MAX_HEADER_OCTETS)
    faults.push(invalid('header', `the header is longer than ${MAX_HEADER_OCTETS} octets`))
  else text = message.toString('latin1', 0, end)
  const fields = readFields(text, MAX_HEADER_FIELDS)
  if (fields.length > MAX_HEADER_FIELDS)
    faults.push(invalid('header', `the header has more than ${MAX_HEADER_FIELDS} fields`))
  if (text.includes('\0')) faults.push(invalid('header', 'the header has a NUL character'))
  const byName = indexFields(fields, faults)
  return { ...readFacts(byName, faults), text, bodyStart, fields, isEightBit: hasNonAscii(text), faults }
}

export function assertNoFaults({ faults: [fault] }: RelayedHeader): void {
  if (fault) throw new AppError(fault.code, fault.message, { path: fault.path })
}

export function findField(header: RelayedHeader, name: string): HeaderField | undefined {
  return header.fields.find(field => field.name === name)
}

/** The displayed value: unfolded and decoded. */
export function fieldText(header: RelayedHeader, field: HeaderField): string {
  return decodeText(unfoldedValue(field.raw), parameter(header.contentType, 'charset'))
}

/** @returns `end` after the CRLF of the last field */
function headerEnd(message: Buffer): { end: number; bodyStart: number } {
  if (message[0] === 0x0d && message[1] === 0x0a) return { end: 0, bodyStart: 2 }
  const empty = message.indexOf('\r\n\r\n', 0, 'latin1')
  return empty < 0
    ? { end: message.length, bodyStart: message.length }
    : { end: empty + 2, bodyStart: empty + 4 }
}

/** The first field per name; records faults of names and repetitions. */
function indexFields(fields: readonly HeaderField[], faults: HeaderFault[]): Map<string, string> {
  const byName = new Map<string, string>()
  for (const { name, raw } of fields) {
    if (name === '' || !FIELD_NAME.test(name) || raw.charCodeAt(name.length) !== 0x3a) {
      faults.push(invalid('header', nameFault(raw)))
    } else if (!byName.has(name)) {
      byName.set(name, raw)
    } else if (ONLY_ONCE.has(name)) {
      faults.push(invalid(writtenName(raw), `the header has more than one ${writtenName(raw)} field`))
    }
  }
  return byName
}

function nameFault(raw: string): string {
  if (/^[ \t]/.test(raw)) return 'the header begins with a folded line'
  return raw.includes(':')
    ? 'the header has a field name with invalid characters'
    : 'the header has a line without a colon'
}

type Facts = Omit<RelayedHeader, 'text' | 'bodyStart' | 'fields' | 'isEightBit' | 'faults'>

function readFacts(byName: ReadonlyMap<string, string>, faults: HeaderFault[]): Facts {
  const value = (name: string): string | undefined => {
    const raw = byName.get(name)
    return raw === undefined ? undefined : unfoldedValue(raw)
  }
  const typeText = value('content-type')
  const contentType = typeText === undefined ? NO_TYPE : readMediaType(typeText)
  const charset = parameter(contentType, 'charset')
  const mailboxes = (name: string): RelayedMailbox[] =>
    readMailboxes(name, value(name.toLowerCase()), charset, faults)
  const from = mailboxes('From')
  const [sender] = mailboxes('Sender')
  if (!byName.has('from'))
    faults.push({ code: 'missing_from_email', path: 'From', message: 'the header has no From field' })
  else if (from.length === 0 && !faults.some(({ path }) => path === 'From'))
    faults.push(invalid('From', 'the From field has no address'))
  else if (from.length > 1 && !sender)
    faults.push(invalid('From', 'the From field has several addresses, which requires a Sender field'))
  const date = value('date')
  const messageId = value('message-id')?.replace(/^<|>$/g, '').trim()
  const shown = (name: string, text: string): string => {
    if (text.includes('\0')) faults.push(invalid(name, encodedNul(name)))
    return text
  }
  return {
    from,
    ...(sender && { sender }),
    replyTo: mailboxes('Reply-To'),
    subject: shown('Subject', decodeText(value('subject') ?? '', charset)),
    to: shown('To', displayed(value('to'), charset)),
    cc: shown('Cc', displayed(value('cc'), charset)),
    ...(date && { date }),
    ...(messageId && { messageId }),
    contentType,
    hasMimeVersion: byName.has('mime-version'),
  }
}

/**
 * An unreadable Reply-To is ignored: it only affects replies. A non-ASCII local part is a fault in all three fields, as in the API: most
 * hosts refuse such mail, and those who reply may lack SMTPUTF8.
 */
function readMailboxes(
  name: string,
  value: string | undefined,
  charset: string | undefined,
  faults: HeaderFault[],
): RelayedMailbox[] {
  if (value === undefined) return []
  const list = readAddressList(decodeOctets(value, charset))
  const mailboxes: RelayedMailbox[] = []
  const refuse = (why: string): void => {
    if (name !== 'Reply-To') faults.push(invalid(name, `the ${name} field ${why}`))
  }
  if (list.fault !== undefined) refuse(list.fault)
  for (const listed of mailboxesOf(list)) {
    const address = readAddress(listed.address, { allowSingleLabel: true })
    if ('fault' in address) refuse(`cannot be read: the address ${address.fault}`)
    else if (address.needsSmtpUtf8)
      faults.push(invalid(name, `the ${name} field has an address that is not ASCII before the @`))
    else if (listed.name?.includes('\0')) faults.push(invalid(name, encodedNul(name)))
    else mailboxes.push(listed.name === undefined ? { address } : { name: listed.name, address })
  }
  return mailboxes
}

/** Encoded-words can contain NUL, and PostgreSQL cannot store it in the decoded text. */
function encodedNul(name: string): string {
  return `the ${name} field has a NUL character in an encoded-word`
}

function displayed(value: string | undefined, charset: string | undefined): string {
  if (value === undefined) return ''
  // Cut before decoding, so that a thousand recipients are not decoded for the first few.
  return decodeText(cutOctets(value, 4 * MAX_DISPLAYED), charset).slice(0, MAX_DISPLAYED)
}

function invalid(path: string, message: string): HeaderFault {
  return { code: 'validation_error', path, message }
}

function writtenName(raw: string): string {
  return raw.slice(0, raw.indexOf(':'))
}
