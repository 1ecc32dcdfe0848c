/**
 * Finds the parts of a finished message that mail clients display, where footer and tracking may be added, and detects protected messages.
 *
 * Attachments, attached messages and signed or encrypted parts do not count; if any displayed part is protected, none is returned. Never
 * throws; a message beyond the limits has no such parts. Linear.
 * Standards: RFC 2046 §5.1.3 (mixed), §5.1.4 (alternative), RFC 2387 §3.2 (root of related), RFC 2183 §2 (attachments), RFC 1847
 * (multipart/signed, multipart/encrypted), RFC 8551 (S/MIME), RFC 3156 and RFC 9580 §6 (OpenPGP).
 */
import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { AppError } from '../../core/errors.js'
import { decodeCharset, encodeInCharset, hasNonAscii } from '../mime/charset.js'
import { safeLabelValue } from '../mime/header-fields.js'
import { parameter, readMediaType } from '../mime/media-type.js'
import { readMimeStructure, type MimeEntity, type MimeRules } from '../mime/mime-structure.js'
import {
  decodeTransfer,
  encodeBase64,
  ENCODED_LINE,
  encodeQuotedPrintable,
} from '../mime/transfer-encoding.js'
import {
  fieldText,
  findField,
  MAX_HEADER_FIELDS,
  MAX_HEADER_OCTETS,
  type RelayedHeader,
} from './relayed-header.js'

export interface ReadablePart {
  readonly entity: MimeEntity
  readonly kind: 'html' | 'plain'
  /** The mail's own text, as opposed to a text appended to it. */
  readonly isMain: boolean
}

interface ReadableMessage {
  readonly root: MimeEntity
  readonly parts: readonly ReadablePart[]
  /** The author signed or encrypted a displayed part, so nothing may be changed. */
  readonly isProtected: boolean
}

const RULES: MimeRules = {
  isLenient: false,
  maxDepth: 50,
  maxParts: 2_000,
  maxHeaderOctets: MAX_HEADER_OCTETS,
  maxFields: MAX_HEADER_FIELDS,
  maxFieldsOfAll: 20_000,
  opens: type => type.startsWith('multipart/') && !isProtectingType(type),
}
/** Multiparts that are not a displayed text with its resources. */
const CLOSED_TYPES: ReadonlySet<string> = new Set([
  'multipart/digest',
  'multipart/report',
  'multipart/form-data',
  'multipart/byteranges',
])
const ENCODINGS: ReadonlySet<string> = new Set(['', '7bit', '8bit', 'binary', 'base64', 'quoted-printable'])

/**
 * @param message CRLF line endings; a prefix suffices
 * @returns undefined if the message exceeds the limits
 */
export function readReadableParts(message: Buffer): ReadableMessage | undefined {
  try {
    const root = readMimeStructure(message, RULES)
    const search = new PartCollector(message)
    search.visit(root, true)
    const { isProtected } = search
    return { root, parts: isProtected ? [] : search.parts, isProtected }
  } catch (error) {
    if (error instanceof AppError) return undefined
    throw error
  }
}

class PartCollector {
  readonly parts: ReadablePart[] = []
  isProtected = false
  private readonly message: Buffer

  constructor(message: Buffer) {
    this.message = message
  }

  /** @returns whether it contained the main text */
  visit(entity: MimeEntity, isMain: boolean): boolean {
    const { value } = entity.type
    if (isProtectingType(value)) this.isProtected = true
    if (isAttachment(entity)) return false
    if (value.startsWith('multipart/')) return this.visitMultipart(entity, isMain)
    const kind = value === 'text/html' ? 'html' : value === 'text/plain' ? 'plain' : undefined
    if (kind === undefined || !entity.hasBody || !ENCODINGS.has(entity.encoding)) return false
    this.isProtected ||= hasArmour(contentOf(this.message, entity))
    this.parts.push({ entity, kind, isMain })
    return isMain
  }

  private visitMultipart({ type, parts }: MimeEntity, isMain: boolean): boolean {
    if (CLOSED_TYPES.has(type.value)) return false
    if (type.value === 'multipart/related') {
      const root = rootOf(parts, parameter(type, 'start'))
      return root !== undefined && this.visit(root, isMain)
    }
    if (type.value === 'multipart/alternative')
      return parts.map(part => this.visit(part, isMain)).some(Boolean)
    // The first text is the mail; later ones were appended to it.
    let wasMain = false
    for (const part of parts) wasMain = this.visit(part, isMain && !wasMain) || wasMain
    return wasMain
  }
}

function contentOf(message: Buffer, { bodyStart, end, encoding }: MimeEntity): Buffer {
  return decodeTransfer(message.subarray(bodyStart, end), encoding)
}

function rootOf(parts: readonly MimeEntity[], start: string | undefined): MimeEntity | undefined {
  if (start === undefined) return parts[0]
  const id = start.trim()
  return (
    parts.find(({ fields }) =>
      fields.some(field => field.name === 'content-id' && safeLabelValue(field).trim() === id),
    ) ?? parts[0]
  )
}

/** A named part is a file, whatever its disposition: mail programs do not name the text of a mail. */
function isAttachment({ fields, type }: MimeEntity): boolean {
  if (parameter(type, 'name') !== undefined) return true
  const field = fields.find(({ name }) => name === 'content-disposition')
  if (!field) return false
  const disposition = readMediaType(safeLabelValue(field))
  return disposition.value === 'attachment' || parameter(disposition, 'filename') !== undefined
}

/** `pgp-text`: OpenPGP armour in the text. */
type Protection = 'signed' | 'encrypted' | 'smime' | 'pgp-text'

const PROTECTING_TYPES: ReadonlyMap<string, Protection> = new Map([
  ['multipart/signed', 'signed'],
  ['multipart/encrypted', 'encrypted'],
  ['application/pkcs7-mime', 'smime'],
  ['application/x-pkcs7-mime', 'smime'],
])

/** RFC 9580 §6.2, §7. Key blocks and detached signatures next to a text do not protect it. */
const ARMOUR = ['-----BEGIN PGP MESSAGE-----', '-----BEGIN PGP SIGNED MESSAGE-----'] as const
/** Octets of a base64 text decoded to search for armour. */
const MAX_DECODED = 262_144

function isProtectingType(type: string): boolean {
  return PROTECTING_TYPES.has(type)
}

/**
 * Whether the author signed or encrypted the message, so that its body must not be changed. A signed message attached to another does not
 * count.
 *
 * @returns the kind of protection, or undefined
 */
export function protectionOf(header: RelayedHeader, message: Buffer): Protection | undefined {
  const { value } = header.contentType
  const byType = PROTECTING_TYPES.get(value)
  if (byType) return byType
  const body = message.subarray(header.bodyStart)
  return hasArmour(body) || (value.startsWith('text/') && hasArmour(decoded(header, body)))
    ? 'pgp-text'
    : undefined
}

/** An existing DKIM signature is kept; changing what it covers is the sender's risk. */
export function hasDkimSignature(header: RelayedHeader): boolean {
  return findField(header, 'dkim-signature') !== undefined
}

/** At the start of a line. Quoted-printable does not change the line, since it contains no `=`. */
function hasArmour(body: Buffer): boolean {
  return ARMOUR.some(line => {
    let at = body.indexOf(line, 0, 'latin1')
    while (at > 0 && body[at - 1] !== 0x0a) at = body.indexOf(line, at + 1, 'latin1')
    return at >= 0
  })
}

function decoded(header: RelayedHeader, body: Buffer): Buffer {
  const field = findField(header, 'content-transfer-encoding')
  if (!field || fieldText(header, field).toLowerCase() !== 'base64') return Buffer.alloc(0)
  return decodeTransfer(body.subarray(0, MAX_DECODED), 'base64')
}

/**
 * Decoded text that can be edited and re-encoded without changing other octets.
 *
 * Text in a charset that cannot be encoded stays octets; additions must then be ASCII or encodable in the charset.
 */
export interface PartText {
  readonly text: string
  /** Whether each character is an octet of `charset`; otherwise the text is written as UTF-8. */
  readonly isOctets: boolean
  /** Lower case; empty if not declared. */
  readonly charset: string
}

interface ExtensibleText {
  readonly part: PartText
  readonly written: (text: string) => string
}

/** UTF-8, or labels that UTF-8 covers. */
const IS_UTF8 = /^$|^utf-?8$|^(?:us-)?ascii$|^unknown/
/** Octets below 0x80 are not always ASCII in these charsets, so they cannot be edited as octets. */
const OF_OTHER_OCTETS = /^(?:utf-?(?:16|32|7)|unicode|iso-2022-|csiso2022|hz-gb|ucs-)/

/** @returns undefined for text that could only be guessed */
export function readPartText(message: Buffer, entity: MimeEntity): PartText | undefined {
  const content = contentOf(message, entity)
  const charset = parameter(entity.type, 'charset')?.trim().toLowerCase() ?? ''
  if (OF_OTHER_OCTETS.test(charset)) {
    const text = decodeExactly(content, charset)
    return text === undefined ? undefined : { text, isOctets: false, charset }
  }
  const isOctets = !IS_UTF8.test(charset) || !isUtf8(content)
  return { text: content.toString(isOctets ? 'latin1' : 'utf8'), isOctets, charset }
}

export function decodePiece(piece: string, { isOctets, charset }: PartText): string {
  return isOctets && hasNonAscii(piece) ? decodeCharset(Buffer.from(piece, 'latin1'), charset) : piece
}

/**
 * Prepares a text for additions that its charset may lack: keeps the charset if it can encode them, else converts to UTF-8.
 *
 * @param words all characters that may be added
 * @returns `written` encodes additions for `part`
 */
export function makeExtensible(words: string, part: PartText): ExtensibleText {
  if (!part.isOctets) return { part, written: text => text }
  if (encodeInCharset(words, part.charset))
    return { part, written: text => encodeInCharset(text, part.charset)?.toString('latin1') ?? '' }
  const text = decodeExactly(Buffer.from(part.text, 'latin1'), part.charset)
  if (text !== undefined) return { part: { ...part, text, isOctets: false }, written: added => added }
  // The charset is unknown, so the text is kept and additions are reduced to ASCII.
  return { part, written: added => added.replace(/[^\x20-\x7e\r\n]/gu, '?') }
}

/** Whether the part must be relabelled as UTF-8. @param words the additions */
export function needsUtf8Label({ isOctets, charset }: PartText, words: string): boolean {
  if (isOctets || /^utf-?8$/.test(charset)) return false
  return !IS_UTF8.test(charset) || hasNonAscii(words)
}

export function encodePartText(text: string, { isOctets }: PartText, { encoding }: MimeEntity): Buffer {
  const octets = Buffer.from(text, isOctets ? 'latin1' : 'utf8')
  if (encoding === 'quoted-printable') return encodeQuotedPrintable(octets, ENCODED_LINE)
  return encoding === 'base64' ? encodeBase64(octets) : octets
}

function decodeExactly(octets: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(octets)
  } catch {
    return undefined
  }
}
