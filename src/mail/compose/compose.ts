/**
 * Composes messages from content and the recipient's fields.
 *
 * Output is 7-bit (except UTF-8 addresses in the header, if the message needs SMTPUTF8 anyway), has CRLF line endings and no long lines,
 * and is byte-identical when composed again, so retries send the same message. Text that is already encoded (`encoded-text.ts`) is used as
 * is.
 * Throws AppError `validation_error`, with the field as path, for a value that cannot be written to a header.
 * Standards: RFC 5322 (header), RFC 2045 (transfer encodings), RFC 2046 §5.1 (multipart), RFC 2387 (related), RFC 2047, RFC 6532 (UTF-8
 * headers).
 */
import { isAscii } from 'node:buffer'
import { createHash } from 'node:crypto'
import { AppError } from '../../core/errors.js'
import { asFile, attachmentPart, invitationPart, isInvitation, type Attachment } from './attachment-part.js'
import { readAddress, type EmailAddress, type NamedAddress } from '../address.js'
import { isComposedField } from '../server-fields.js'
import {
  type AddressForm,
  foldField,
  hasHeaderBreak,
  headerDate,
  internationalMailbox,
  mailbox,
  unstructured,
} from '../mime/write-header-field.js'
import { encodeText, type EncodedText } from './encoded-text.js'
import { plainTextOf } from './plain-text.js'

export interface Letter {
  readonly subject: string
  readonly html?: string
  /** Generated from the HTML if absent; callers sending one HTML to many recipients do that once (`plainTextOf`). */
  readonly text?: string
  /** Additional fields such as List-Unsubscribe, after the composer's own. */
  readonly headers?: readonly HeaderField[]
}

/** A letter whose texts may already be encoded. */
export type MaybeEncoded<L extends Letter> = Omit<L, 'html' | 'text'> & {
  readonly html?: string | EncodedText
  readonly text?: string | EncodedText
}

/** Final content of one message: merge tags filled in, links rewritten. */
export interface ComposedContent extends Letter {
  readonly kind: 'composed'
  readonly from: NamedAddress
  readonly replyTo?: NamedAddress
  /** Absent if each recipient sees only itself. */
  readonly addressees?: VisibleRecipients
  /** Left side of the Message-ID if several messages are copies of one mail; otherwise each has its own. */
  readonly mailId?: string
  readonly attachments?: readonly Attachment[]
}

/**
 * The recipients shown in the header. If anybody gets a copy (Cc), all are shown to all. If there are only blind copies, each To recipient
 * sees only itself, and blind copies show the To recipients. Bcc recipients are never shown.
 */
export interface VisibleRecipients {
  readonly to: readonly NamedAddress[]
  readonly cc: readonly NamedAddress[]
  /** Whether there are Cc or Bcc recipients: all then get the same mail with the same Message-ID. */
  readonly hasCopies: boolean
}

export interface HeaderField {
  readonly name: string
  readonly value: string
}

/** Fields that differ per recipient. */
export interface RecipientFields {
  readonly to: string
  /** Ms since epoch UTC. */
  readonly date: number
  /** `left@right`, without angle brackets. */
  readonly messageId: string
}

/** Structured fields: an encoded-word in them would be no message id (RFC 2047 §5). */
const MESSAGE_ID_FIELD = /^(references|in-reply-to)$/i

/** RFC 5322 §2.2: printable ASCII except the colon. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]{1,76}$/

export interface Composed {
  /** Complete and unsigned, without Return-Path or Received. */
  readonly message: Buffer
  /** Relaxed canonical body (RFC 6376 §3.4.4), if known; such a body can be signed. */
  readonly canonicalBody?: Buffer
}

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

/** Fields that `composeWithHeader` writes, lower case. */
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
 * @param header as submitted, including the empty line, without `CONTENT_FIELDS`
 * @param name makes the boundaries unique
 * @returns the message; the header's octets are unchanged
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
  // Only SMTPUTF8 servers can deliver to such a recipient, so the header may use UTF-8 as well.
  const form = address(to, 'to').needsSmtpUtf8 ? 'utf8' : 'group'
  if (!addressees) return [field('To', recipients([{ address: to }], 'to', form))]
  const own = addressees.to.find(one => one.address === to)
  const shown = addressees.cc.length > 0 || !own ? addressees.to : [own]
  return [
    // RFC 5322 §3.4: an empty group if no valid address remains.
    field('To', shown.length === 0 ? 'undisclosed-recipients:;' : recipients(shown, 'to', form)),
    ...(addressees.cc.length === 0 ? [] : [field('Cc', recipients(addressees.cc, 'cc', form))]),
  ]
}

function recipients(named: readonly NamedAddress[], path: string, form: AddressForm): string {
  return named
    .map(({ name, address: text }) => internationalMailbox(address(text, path), form, name))
    .join(', ')
}

/** Why a caller's header field cannot be written: a phrase that completes "the header ...", or undefined. */
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
  if (MESSAGE_ID_FIELD.test(name) && !isAscii(Buffer.from(value)))
    throw new AppError('validation_error', `${path} may contain message ids only, which are ASCII`, { path })
  // ASCII values are not re-encoded, since the field may be structured (List-Unsubscribe is).
  return field(name, /[^\x20-\x7e\t]/.test(value) ? unstructured(value) : value, path)
}

/** It must be possible to reply to From and Reply-To, so their local part must be ASCII. */
function senderMailbox({ name, address: text }: NamedAddress, path: string): string {
  const parsed = address(text, path)
  if (parsed.needsSmtpUtf8)
    throw new AppError('validation_error', `${path}: the part before the @ must be ASCII`, { path })
  return mailbox(parsed, name === undefined ? undefined : assertNoHeaderBreak(name, `${path}_name`))
}

/** Single-label domains were checked when the address was accepted. */
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

/** Header and body of a part, or of the message after its other fields. */
interface Entity {
  readonly text: string
  /** Of the body, if known. */
  readonly canonicalBody?: string
  /** Whether the body is its own canonical form. */
  readonly isCanonical?: boolean
}

/**
 * RFC 2046 §5.1.3, RFC 2387: inline images are related to the HTML; other attachments are mixed with the whole. An invitation is an alternative,
 * and a file besides (RFC 6047 §2.4).
 */
function bodyOf(
  content: MaybeEncoded<Letter> & Pick<ComposedContent, 'attachments'>,
  messageId: string,
): Entity {
  const { html, attachments: given = [] } = content
  const invitations = given.filter(isInvitation)
  const attachments =
    invitations.length === 0 ? given : given.map(one => (isInvitation(one) ? asFile(one) : one))
  const text = textPart('plain', content.text ?? (typeof html === 'string' ? plainTextOf(html) : ''))
  // RFC 2046 §5.1.4: the richest alternative last.
  const alternatives = [
    text,
    ...(html === undefined ? [] : [textPart('html', html)]),
    ...invitations.map(calendarPart),
  ]
  const readable = alternatives.length === 1 ? { text: text.text } : alternative(alternatives, messageId)
  const isShown = (one: Attachment) => html !== undefined && one.contentId !== undefined
  const shown = attachments.filter(isShown).map(one => attachmentPart(one, true))
  const listed = attachments.filter(one => !isShown(one)).map(one => attachmentPart(one, false))
  const related =
    shown.length === 0
      ? readable
      : multipart('related; type="multipart/alternative"', [readable.text, ...shown], `${messageId} related`)
  return listed.length === 0 ? related : multipart('mixed', [related.text, ...listed], `${messageId} mixed`)
}

/** The CRLF before a delimiter belongs to the delimiter (RFC 2046 §5.1.1). @param name makes the boundary unique */
function multipart(subtype: string, parts: readonly string[], name: string): Entity {
  const boundary = boundaryOf(name)
  return { text: multipartHead(subtype, boundary) + joinParts(parts, boundary) }
}

/** Text parts only, so that the canonical form is known. */
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
 * `=_` cannot occur in quoted-printable or base64 (RFC 2045 §6.7), and an attached message cannot contain the hash of this message's id.
 */
function boundaryOf(name: string): string {
  return `=_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
}

function multipartHead(subtype: string, boundary: string): string {
  return `Content-Type: multipart/${subtype};\r\n boundary="${boundary}"\r\n\r\n`
}

/** Plain concatenation avoids intermediate copies. */
function joinParts(parts: readonly string[], boundary: string): string {
  let body = ''
  for (const part of parts) body += `--${boundary}\r\n${part}\r\n`
  return `${body}--${boundary}--\r\n`
}

/** Header and body of a text part; the body keeps the text's trailing CRLF, if any. */
interface TextPart {
  readonly text: string
  /** Canonical form, if different. */
  readonly canonical?: string
}

function textPart(subtype: 'plain' | 'html', text: string | EncodedText): TextPart {
  const [encoding, { encoded, canonical }] =
    typeof text === 'string' ? encodeText(text) : (['quoted-printable', text] as const)
  const head = [
    `Content-Type: text/${subtype}; charset=utf-8`,
    `Content-Transfer-Encoding: ${encoding}`,
  ].join('\r\n')
  const whole = { text: `${head}\r\n\r\n${encoded}` }
  return canonical === undefined ? whole : { ...whole, canonical: `${head}\r\n\r\n${canonical}` }
}

function calendarPart(invitation: Attachment): TextPart {
  const { head, body } = invitationPart(invitation)
  // Values of parameters may contain several spaces.
  return { text: `${head}\r\n\r\n${body}`, canonical: `${head.replace(/[ \t]+/g, ' ')}\r\n\r\n${body}` }
}

export interface RelayedContent {
  readonly kind: 'relayed'
  /** For display in traces and the local inbox. */
  readonly subject: string
  /** The whole message with CRLF line endings; may be 8-bit or have long lines. With `letter`, the header only. */
  readonly message: Buffer
  /** Content to append to the header, from which the subject and MIME fields were removed. */
  readonly letter?: Letter
}
