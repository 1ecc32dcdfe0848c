/**
 * Composes a message: content and what is one recipient's own in, the octets that are signed and sent out.
 *
 * Called by the delivery agent for every message. What it makes is 7-bit (but for addresses in the header that only SMTPUTF8
 * can carry, in messages that only it can carry), has CRLF line ends and no long lines, and is the same to the octet when
 * composed again: a retry sends what the first attempt sent. Encodings and boundaries are
 * chosen here; text that is encoded already (`encoded-text.ts`) is taken as it is. Never touches files or the network.
 * Standards: RFC 5322 (header), RFC 2045 (transfer encodings), RFC 2046 §5.1 (multipart), RFC 2387 (related), RFC 2047,
 * RFC 6532 (UTF-8 in headers).
 * Fails: rejects with AppError `validation_error`, its path naming the field, for a value that no header can hold.
 */
import { createHash } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import { attachmentPart, type Attachment } from './attachment-part.js'
import { readAddress, type EmailAddress, type NamedAddress } from '../address.js'
import { isComposedField } from '../server-fields.js'
import { foldField, internationalMailbox, mailbox, unstructured, type AddressForm } from './header-field.js'
import { headerDate } from '../mime/header-date.js'
import { encodeBody, toCrlfOctets, type EncodedText } from './encoded-text.js'
import { encodeBase64, isShorterInBase64 } from '../mime/transfer-encoding.js'
import { hasHeaderBreak } from './header-text.js'
import { plainTextOf } from './plain-text.js'

/** What a message says. */
export interface Letter {
  readonly subject: string
  readonly html?: string
  /** Made from the HTML when missing; callers that send one HTML to many do that once (`plainTextOf`). */
  readonly text?: string
  /** Further fields, e.g. List-Unsubscribe; in this order, after the composer's own. */
  readonly headers?: readonly HeaderField[]
}

/** With its texts as they are or, wherever that could be done ahead, encoded. */
export type MaybeEncoded<L extends Letter> = Omit<L, 'html' | 'text'> & {
  readonly html?: string | EncodedText
  readonly text?: string | EncodedText
}

/** Finished content of one message: merged, links rewritten. */
export interface ComposedContent extends Letter {
  readonly kind: 'composed'
  readonly from: NamedAddress
  readonly replyTo?: NamedAddress
  /** Absent where each recipient sees itself alone. */
  readonly addressees?: VisibleRecipients
  /** What stands before the @ of the Message-ID, where several messages are copies of one mail; else each has its own. */
  readonly mailId?: string
  readonly attachments?: readonly Attachment[]
}

/**
 * Whom a message names. Where somebody gets a copy, all see all of them; where there are only blind copies, each recipient
 * of `to` sees itself alone and a blind copy shows whom the mail went to. Blind copies are named nowhere.
 */
export interface VisibleRecipients {
  readonly to: readonly NamedAddress[]
  readonly cc: readonly NamedAddress[]
  /** Somebody has a copy, open or blind: all recipients have the same mail, with the same Message-ID. */
  readonly hasCopies: boolean
}

export interface HeaderField {
  readonly name: string
  readonly value: string
}

/** What the message of one recipient has of its own. */
export interface RecipientFields {
  /** Recipient as the header shows it; one address. */
  readonly to: string
  /** Ms since epoch UTC. */
  readonly date: number
  /** `left@right`, without angle brackets. */
  readonly messageId: string
}

/** RFC 5322 §2.2: printable ASCII except the colon. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]{1,76}$/

/** A message, and what a signature says of its body where that is known without a look at each octet. */
export interface Composed {
  /** Complete, unsigned, without a Return-Path or Received field. */
  readonly message: Buffer
  /** In relaxed canonical form (RFC 6376 §3.4.4); the body it is of can be signed. */
  readonly canonicalBody?: Buffer
}

/** @returns the message of `composeForSigning` */
export async function composeMessage(
  content: MaybeEncoded<ComposedContent>,
  copy: RecipientFields,
): Promise<Buffer> {
  return Promise.resolve(composeForSigning(content, copy).message)
}

export function composeForSigning(content: MaybeEncoded<ComposedContent>, copy: RecipientFields): Composed {
  const fields = [...standardFields(content, copy), ...extraFields(content), field('MIME-Version', '1.0')]
  return composed(fields.join('\r\n'), bodyOf(content, copy.messageId))
}

function composed(head: string, { text, canonicalBody, isCanonical }: Entity): Composed {
  const end = text.endsWith('\r\n') ? '' : '\r\n'
  const message = Buffer.from(`${head}\r\n${text}${end}`, 'latin1')
  if (canonicalBody === undefined) return { message }
  return {
    message,
    canonicalBody: isCanonical
      ? message.subarray(message.length - canonicalBody.length)
      : Buffer.from(canonicalBody, 'latin1'),
  }
}

/** The fields that the header of such a message must not have, lower case. */
export const CONTENT_FIELDS: readonly string[] = [
  'subject',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'content-disposition',
  'content-description',
  'content-language',
  'content-id',
]

/**
 * @param header as it was given, with the empty line that ends it and without `LETTER_FIELDS`
 * @param name makes the boundaries of the message its own
 * @returns the message with a body of ours; octets of the header stay
 */
export function composeWithHeader(header: Buffer, letter: MaybeEncoded<Letter>, name: string): Buffer {
  const fields = [
    field('Subject', unstructured(assertNoHeaderBreak(letter.subject, 'subject')), 'subject'),
    ...extraFields(letter),
    field('MIME-Version', '1.0'),
  ]
  const { message: behind } = composed(fields.join('\r\n'), bodyOf(letter, name))
  return Buffer.concat([header.subarray(0, header.length - '\r\n'.length), behind])
}

function standardFields(content: MaybeEncoded<ComposedContent>, copy: RecipientFields): string[] {
  const { date, messageId } = copy
  const head = [
    field('From', senderMailbox(content.from, 'from')),
    ...recipientFields(content, copy),
    field('Subject', unstructured(assertNoHeaderBreak(content.subject, 'subject')), 'subject'),
    field('Date', headerDate(date)),
    field('Message-ID', `<${assertNoHeaderBreak(messageId, 'message_id')}>`),
  ]
  if (content.replyTo) head.push(field('Reply-To', senderMailbox(content.replyTo, 'reply_to')))
  return head
}

function recipientFields(
  { addressees }: Pick<ComposedContent, 'addressees'>,
  { to }: RecipientFields,
): string[] {
  // Only a server with SMTPUTF8 can take a message for such a recipient at all, and takes its header in UTF-8 as well.
  const form = address(to, 'to').needsSmtpUtf8 ? 'utf8' : 'group'
  if (!addressees) return [field('To', recipients([{ address: to }], 'to', form))]
  const own = addressees.to.find(one => one.address === to)
  const shown = addressees.cc.length > 0 || !own ? addressees.to : [own]
  return [
    // RFC 5322 §3.4: an empty group, where none of those named was an address.
    field('To', shown.length === 0 ? 'undisclosed-recipients:;' : recipients(shown, 'to', form)),
    ...(addressees.cc.length === 0 ? [] : [field('Cc', recipients(addressees.cc, 'cc', form))]),
  ]
}

function recipients(named: readonly NamedAddress[], path: string, form: AddressForm): string {
  return named
    .map(({ name, address: text }) => internationalMailbox(address(text, path), form, name))
    .join(', ')
}

/** Why a caller's own field cannot be written; undefined where it can. One phrase that completes "the header ...". */
export function headerFault({ name, value }: HeaderField): string | undefined {
  try {
    extraField({ name, value })
    return undefined
  } catch (error) {
    return error instanceof AppError ? error.message : undefined
  }
}

function extraFields({ headers = [] }: Pick<Letter, 'headers'>): string[] {
  return headers.map(extraField)
}

function extraField({ name, value }: HeaderField): string {
  const path = `headers.${name}`
  if (!FIELD_NAME.test(name)) throw new AppError('validation_error', 'not a header field name', { path })
  if (isComposedField(name))
    throw new AppError('validation_error', 'this header field is set by the server', { path })
  assertNoHeaderBreak(value, path)
  // Unknown fields may be structured (List-Unsubscribe is): ASCII stays as it is.
  return field(name, /[^\x20-\x7e\t]/.test(value) ? unstructured(value) : value, path)
}

/** From and Reply-To have to be answerable, so their local part has to fit into an ASCII header. */
function senderMailbox({ name, address: text }: NamedAddress, path: string): string {
  const parsed = address(text, path)
  if (parsed.needsSmtpUtf8)
    throw new AppError('validation_error', `${path}: the part before the @ must be ASCII`, { path })
  return mailbox(parsed, name === undefined ? undefined : assertNoHeaderBreak(name, `${path}_name`))
}

/** Whether single labels are welcome was decided where the address came in. */
function address(text: string, path: string): EmailAddress {
  const result = readAddress(text, { allowSingleLabel: true })
  if ('fault' in result)
    throw new AppError('validation_error', `${path}: the address ${result.fault}`, { path })
  return result
}

function assertNoHeaderBreak(text: string, path: string): string {
  if (hasHeaderBreak(text))
    throw new AppError('validation_error', `${path} contains a line break or control character`, { path })
  return text
}

function field(name: string, value: string, path = name.toLowerCase()): string {
  const folded = foldField(name, value)
  if (folded === undefined)
    throw new AppError('validation_error', `${path} is too long for a header line`, { path })
  return folded
}

/** Header and body of a part, or of the message behind its other fields. */
interface Entity {
  readonly text: string
  /** Of the body, where it is known. */
  readonly canonicalBody?: string
  /** Whether that is the body itself. */
  readonly isCanonical?: boolean
}

/** RFC 2046 §5.1.3, RFC 2387: what the HTML shows stands beside it, what the reader opens beside both. */
function bodyOf(
  content: MaybeEncoded<Letter> & Pick<ComposedContent, 'attachments'>,
  messageId: string,
): Entity {
  const { html, attachments = [] } = content
  const text = textPart('plain', content.text ?? (typeof html === 'string' ? plainTextOf(html) : ''))
  // RFC 2046 §5.1.4: the richest form last.
  const readable =
    html === undefined ? { text: text.text } : alternative([text, textPart('html', html)], messageId)
  const isShown = (one: Attachment) => html !== undefined && one.contentId !== undefined
  const shown = attachments.filter(isShown).map(one => attachmentPart(one, true))
  const listed = attachments.filter(one => !isShown(one)).map(one => attachmentPart(one, false))
  const related =
    shown.length === 0
      ? readable
      : multipart('related; type="multipart/alternative"', [readable.text, ...shown], `${messageId} related`)
  return listed.length === 0 ? related : multipart('mixed', [related.text, ...listed], `${messageId} mixed`)
}

/** The CRLF before a delimiter belongs to the delimiter (RFC 2046 §5.1.1). @param name makes the boundary its own */
function multipart(subtype: string, parts: readonly string[], name: string): Entity {
  const boundary = boundaryOf(name)
  return { text: multipartHead(subtype, boundary) + joinParts(parts, boundary) }
}

/** Of texts alone, of which the canonical form is known. */
function alternative(parts: readonly TextPart[], name: string): Entity {
  const boundary = boundaryOf(name)
  const inParts = (text: (part: TextPart) => string) => joinParts(parts.map(text), boundary)
  const body = inParts(({ text }) => text)
  const isCanonical = parts.every(({ canonical }) => canonical === undefined)
  return {
    text: multipartHead('alternative', boundary) + body,
    canonicalBody: isCanonical ? body : inParts(({ text, canonical = text }) => canonical),
    isCanonical,
  }
}

/**
 * `=_` can stand in no quoted-printable or base64 text (RFC 2045 §6.7), so no such content can hold the boundary; a message that is
 * attached as it is was written before this one had an identifier.
 */
function boundaryOf(name: string): string {
  return `=_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
}

function multipartHead(subtype: string, boundary: string): string {
  return `Content-Type: multipart/${subtype};\r\n boundary="${boundary}"\r\n\r\n`
}

/** Put together without a copy of each part on the way. */
function joinParts(parts: readonly string[], boundary: string): string {
  let body = ''
  for (const part of parts) body += `--${boundary}\r\n${part}\r\n`
  return `${body}--${boundary}--\r\n`
}

/** Header and body of one entity; the body ends as the text does, with or without CRLF. */
interface TextPart {
  readonly text: string
  /** The same in canonical form; absent where it is the same. */
  readonly canonical?: string
}

function textPart(subtype: 'plain' | 'html', text: string | EncodedText): TextPart {
  const octets = typeof text === 'string' ? toCrlfOctets(text) : undefined
  const isBase64 = octets !== undefined && isShorterInBase64(octets)
  const { encoded, canonical } = transferEncode(text, octets, isBase64)
  const head = [
    `Content-Type: text/${subtype}; charset=utf-8`,
    `Content-Transfer-Encoding: ${isBase64 ? 'base64' : 'quoted-printable'}`,
  ].join('\r\n')
  const whole = { text: `${head}\r\n\r\n${encoded}` }
  return canonical === undefined ? whole : { ...whole, canonical: `${head}\r\n\r\n${canonical}` }
}

function transferEncode(
  text: string | EncodedText,
  octets: Buffer | undefined,
  isBase64: boolean,
): EncodedText {
  if (typeof text !== 'string') return text
  if (octets === undefined) return { encoded: '' }
  return isBase64 ? { encoded: encodeBase64(octets).toString('latin1') } : encodeBody(octets)
}
