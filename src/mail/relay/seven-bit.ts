/**
 * Converts a relayed message to 7-bit with lines of at most 998 octets, preserving its meaning, so that DKIM can sign it.
 *
 * A message that is 7-bit already is returned unchanged. Otherwise only the parts, fields and labels that need it are rewritten. Signed or
 * encrypted parts are never changed, since the signature covers their transfer encoding (RFC 1847 §2.1; RFC 3156 §3 requires 7-bit there);
 * the result says if the message needs 8BITMIME. Linear: some 10 ms for a megabyte to encode; memory about four times the message.
 * Throws AppError `validation_error` for nesting beyond 100, more than 10,000 parts or 50,000 fields in them, a multipart without parts
 * that contains 8-bit octets, and headers that cannot be folded.
 * Standards: RFC 2045 §6.4 (containers are not encoded), RFC 2046 §5, RFC 2047, RFC 2231, RFC 1428 (unknown-8bit), RFC 6376 §5.3.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { AppError } from '../../core/errors.js'
import { toAsciiField, downgradeField, needsDowngrade, type DowngradeRules } from './field-downgrade.js'
import { decodeOctets, hasNonAscii } from '../mime/charset.js'
import { unfoldedValue, type HeaderField } from '../mime/header-fields.js'
import { type MediaType, parameter, readMediaType, writeMediaType } from '../mime/media-type.js'
import { readMimeStructure, type MimeEntity, type MimeRules, type Span } from '../mime/mime-structure.js'
import {
  toSevenBitFiller,
  decodeQuotedPrintable,
  encodeBase64,
  encodeText,
  hasLongLine,
  isSevenBit,
  rewrapBase64,
} from '../mime/transfer-encoding.js'
import { MAX_HEADER_FIELDS, MAX_HEADER_OCTETS } from './relayed-header.js'

export interface SevenBitMessage {
  /** The input Buffer if nothing changed. */
  readonly message: Buffer
  /** Non-ASCII octets or NUL remain in a part that must not be changed: needs 8BITMIME (RFC 6152). */
  readonly isEightBit: boolean
  /** Lines over 998 octets remain in such a part. */
  readonly hasLongLines: boolean
  /** The header contains a UTF-8 address: needs SMTPUTF8 (RFC 6531). */
  readonly needsSmtpUtf8: boolean
}

export interface SevenBitRules {
  /**
   * Whether the recipient requires SMTPUTF8 anyway, so that the header may keep UTF-8 addresses. Otherwise they become readable but
   * unusable, except for the author's address, which is always kept.
   */
  readonly isInternational?: boolean
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly octets: Buffer
}

interface Conversion {
  readonly message: Buffer
  readonly edits: Edit[]
  /** Octets of rewritten fields. */
  rewrittenOctets: number
  /** Charset of the first text part that declares one; raw header octets are probably in it too. */
  charset: string | undefined
  isEightBit: boolean
  hasLongLines: boolean
  isInternational: boolean
  needsSmtpUtf8: boolean
}

interface LabelChanges {
  readonly encoding?: string
  readonly charset?: string
}

type EntityKind = 'message' | 'part'

const RULES: MimeRules = {
  isLenient: false,
  maxDepth: 100,
  maxParts: 10_000,
  maxHeaderOctets: MAX_HEADER_OCTETS,
  maxFields: MAX_HEADER_FIELDS,
  maxFieldsOfAll: 50_000,
  opens,
}
/**
 * Octets of part header fields that are fully converted, a second's work for hostile input; beyond it they are only reduced to ASCII. Real
 * mail needs some hundred.
 */
const MAX_REWRITTEN_OCTETS = 524_288
/** Signed content, or fragments that only make sense together (RFC 2046 §5.2.2). */
const OPAQUE_TYPES: ReadonlySet<string> = new Set([
  'multipart/signed',
  'multipart/encrypted',
  'message/partial',
])
/** RFC 2045 §6.1: a missing field means 7bit. */
const IDENTITY_ENCODINGS: ReadonlySet<string> = new Set(['', '7bit', '8bit', 'binary'])

/** @param message CRLF line endings only */
export function toSevenBit(
  message: Buffer,
  { isInternational = false }: SevenBitRules = {},
): SevenBitMessage {
  if (isSevenBit(message)) return { message, isEightBit: false, hasLongLines: false, needsSmtpUtf8: false }
  const conversion: Conversion = {
    message,
    edits: [],
    charset: undefined,
    rewrittenOctets: 0,
    isEightBit: false,
    hasLongLines: false,
    isInternational,
    needsSmtpUtf8: false,
  }
  convertEntity(conversion, readMimeStructure(message, RULES), 'message', 0)
  const { isEightBit, hasLongLines, needsSmtpUtf8 } = conversion
  return { message: applyEdits(conversion), isEightBit, hasLongLines, needsSmtpUtf8 }
}

function applyEdits({ message, edits }: Conversion): Buffer {
  if (edits.length === 0) return message
  // Label edits are added after the edits of the body they precede.
  edits.sort((one, other) => one.start - other.start || one.end - other.end)
  const pieces: Buffer[] = []
  let at = 0
  for (const { start, end, octets } of edits) {
    pieces.push(message.subarray(at, start), octets)
    at = end
  }
  pieces.push(message.subarray(at))
  return Buffer.concat(pieces)
}

/** The body first, since it may require other labels. */
function convertEntity(conversion: Conversion, entity: MimeEntity, kind: EntityKind, depth: number): void {
  const charset = parameter(entity.type, 'charset')
  if (entity.type.value.startsWith('text/')) conversion.charset ??= charset
  const relabelling = entity.hasBody ? convertBody(conversion, entity, depth) : {}
  convertHeader(conversion, entity, relabelling, kind, depth)
}

function convertBody(conversion: Conversion, entity: MimeEntity, depth: number): LabelChanges {
  const { type, encoding, parts, bodyStart, end } = entity
  const isMultipart = type.value.startsWith('multipart/')
  if (opens(type.value, encoding)) {
    const wasEightBit = conversion.isEightBit
    conversion.isEightBit = false
    if (isMultipart) convertMultipart(conversion, entity, depth)
    else for (const part of parts) convertEntity(conversion, part, 'message', depth + 1)
    return containerLabel(conversion, encoding, wasEightBit)
  }
  const body = conversion.message.subarray(bodyStart, end)
  const isKnown = IDENTITY_ENCODINGS.has(encoding) || encoding === 'base64' || encoding === 'quoted-printable'
  if (isKnown && !OPAQUE_TYPES.has(type.value)) return encodeLeaf(conversion, entity, body, depth)
  recordUnchanged(conversion, body)
  return {}
}

/** Containers, which must not be encoded as a whole (RFC 2045 §6.4), except protected ones. */
function opens(type: string, encoding: string): boolean {
  if (OPAQUE_TYPES.has(type)) return false
  return type.startsWith('multipart/') || (type === 'message/rfc822' && IDENTITY_ENCODINGS.has(encoding))
}

/** RFC 2045 §6.4: a container's encoding is the widest of its parts. */
function containerLabel(conversion: Conversion, encoding: string, wasEightBit: boolean): LabelChanges {
  const isSeven = !conversion.isEightBit
  conversion.isEightBit ||= wasEightBit
  return isSeven && (encoding === '8bit' || encoding === 'binary') ? { encoding: '7bit' } : {}
}

/** For content that must not be changed, or whose encoding is unknown. */
function recordUnchanged(conversion: Conversion, body: Buffer): void {
  conversion.isEightBit ||= !isAscii(body) || body.includes(0)
  conversion.hasLongLines ||= hasLongLine(body)
}

function convertMultipart(conversion: Conversion, entity: MimeEntity, depth: number): void {
  const { message } = conversion
  const { bodyStart, end, parts, preamble, epilogue } = entity
  if (!preamble && !isSevenBit(message.subarray(bodyStart, end)))
    throw new AppError('validation_error', 'the message has a multipart without parts', { path: 'body' })
  if (preamble) replaceFiller(conversion, preamble)
  for (const part of parts) convertEntity(conversion, part, 'part', depth + 1)
  if (epilogue) replaceFiller(conversion, epilogue)
}

/** Preamble and epilogue, which readers do not show (RFC 2046 §5.1.1). */
function replaceFiller(conversion: Conversion, { start, end }: Span): void {
  const filler = conversion.message.subarray(start, end)
  if (!isSevenBit(filler)) conversion.edits.push({ start, end, octets: toSevenBitFiller(filler) })
}

function encodeLeaf(conversion: Conversion, entity: MimeEntity, body: Buffer, depth: number): LabelChanges {
  const { type, encoding, bodyStart: start } = entity
  const isWhole = depth === 0
  if (isSevenBit(body)) return encoding === '8bit' || encoding === 'binary' ? { encoding: '7bit' } : {}
  const replace = (octets: Buffer): void => {
    // Base64 does not end in a line ending; the message must.
    const pieces = isWhole && octets.at(-1) !== 0x0a ? [octets, Buffer.from('\r\n')] : [octets]
    conversion.edits.push({ start, end: start + body.length, octets: Buffer.concat(pieces) })
  }
  if (encoding === 'base64') {
    replace(rewrapBase64(body))
    return {}
  }
  const content = encoding === 'quoted-printable' ? decodeQuotedPrintable(body) : body
  const isText = type.value.startsWith('text/') || type.value.startsWith('message/')
  if (!isText) {
    replace(encodeBase64(content))
    return { encoding: 'base64' }
  }
  const { encoding: chosen, encoded } = encodeText(content)
  if (chosen === 'base64' || !isWhole) replace(encoded)
  else conversion.edits.push({ start, end: start + body.length, octets: encoded })
  const charset = charsetToDeclare(type, content)
  return charset === undefined ? { encoding: chosen } : { encoding: chosen, charset }
}

/** Other text types declare their charset inside or have their own default (RFC 6657 §3). */
function charsetToDeclare(type: MediaType, content: Buffer): string | undefined {
  if (!type.value.startsWith('text/') || isAscii(content) || parameter(type, 'charset') !== undefined)
    return undefined
  if (isUtf8(content)) return 'utf-8'
  return type.value === 'text/plain' ? 'unknown-8bit' : undefined
}

/** Converts fields and labels in a single edit of the header. */
function convertHeader(
  conversion: Conversion,
  { fields, type, start, headerEnd }: MimeEntity,
  label: LabelChanges,
  kind: EntityKind,
  depth: number,
): void {
  const charset = conversion.charset ?? parameter(type, 'charset')
  if (depth === 0) conversion.isInternational ||= fields.some(field => isInternationalAuthor(field, charset))
  // An attached message is only read, so its addresses need not be usable.
  const addresses = depth === 0 && conversion.isInternational ? 'utf8' : 'group'
  const missing = missingFields(label, kind)
  const rewritten = fields.map(
    field => convertField(conversion, field, label, { charset, addresses, depth }) ?? field.raw,
  )
  for (const { name } of fields) missing.delete(name)
  if (missing.size === 0 && fields.every(({ raw }, index) => raw === rewritten[index])) return
  // The last line of a message may lack its line ending.
  const lines = fields.map(
    ({ raw, start, end }, index) => `${rewritten[index] ?? raw}${raw.length === end - start ? '' : '\r\n'}`,
  )
  for (const line of missing.values()) lines.push(`${line}\r\n`)
  conversion.edits.push({ start, end: headerEnd, octets: Buffer.from(lines.join(''), 'latin1') })
}

/** Required fields by lower-case name; those present are removed from the map. */
function missingFields(label: LabelChanges, kind: EntityKind): Map<string, string> {
  const missing = new Map<string, string>()
  if (label.encoding !== undefined)
    missing.set('content-transfer-encoding', `Content-Transfer-Encoding: ${label.encoding}`)
  if (label.charset !== undefined)
    missing.set('content-type', `Content-Type: text/plain; charset=${label.charset}`)
  // RFC 2045 §4: the others have no meaning without it.
  if (missing.size > 0 && kind === 'message') missing.set('mime-version', 'MIME-Version: 1.0')
  return missing
}

/** @returns the field without its final CRLF; undefined if unchanged */
function convertField(
  conversion: Conversion,
  field: HeaderField,
  label: LabelChanges,
  rules: DowngradeRules & { readonly depth: number },
): string | undefined {
  if (field.name === 'content-transfer-encoding' && label.encoding !== undefined)
    return `Content-Transfer-Encoding: ${label.encoding}`
  if (field.name === 'content-type' && label.charset !== undefined) {
    const type = readMediaType(decodeOctets(unfoldedValue(field.raw), rules.charset))
    return writeMediaType('Content-Type', {
      value: type.value || 'text/plain',
      parameters: [...type.parameters, ['charset', label.charset]],
    })
  }
  if (!needsDowngrade(field.raw)) return undefined
  const { depth } = rules
  // The message's own header is bounded separately, and is displayed.
  if (depth > 0) conversion.rewrittenOctets += field.raw.length
  if (depth > 0 && conversion.rewrittenOctets > MAX_REWRITTEN_OCTETS) return toAsciiField(field)
  const downgraded = downgradeField(field, rules)
  conversion.needsSmtpUtf8 ||= hasNonAscii(downgraded)
  return downgraded
}

/** Without an address in From the message has no author, and no DMARC policy (RFC 7489 §6.6.1) can be found. */
function isInternationalAuthor(field: HeaderField, charset: string | undefined): boolean {
  if (field.name !== 'from' || !hasNonAscii(field.raw)) return false
  return hasNonAscii(downgradeField(field, { charset, addresses: 'utf8' }))
}
