/**
 * Makes a relayed message 7-bit, with lines of at most 998 octets, and keeps its meaning: DKIM signs nothing else.
 *
 * Called by submission before a message is stored for signing. A message that is 7-bit already comes back as it is, after
 * a look that takes microseconds. Otherwise only the parts, fields and labels that need it are written anew; every other
 * octet stays. What is signed or encrypted stays whatever it holds, since a signature covers the transfer encoding too
 * (RFC 1847 §2.1; RFC 3156 §3 demands 7-bit there): the result tells that it can only go out as 8BITMIME. Time is linear
 * in the size: some 10 ms for a megabyte that has to be encoded. Pure.
 * Standards: RFC 2045 §6.4 (only multipart and message/rfc822 stay unencoded), RFC 2046 §5, RFC 2047, RFC 2231, RFC 1428
 * (unknown-8bit), RFC 6376 §5.3.
 * Fails: AppError `validation_error` for nesting beyond 100, more than 10,000 parts, a multipart without parts that holds
 * 8-bit octets, and headers that fit into no lines. Linear, memory within some four times the message.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { AppError } from '../../core/errors.js'
import { downgradeField, needsDowngrade, withoutNul, type DowngradeRules } from './field-downgrade.js'
import type { FieldLines } from './field-lines.js'
import { decodeOctets, hasNonAscii, unfoldedValue } from './header-decode.js'
import { parameter, readMediaType, writeMediaType, type MediaType } from './media-type.js'
import {
  findDelimiter,
  readPartHeader,
  type Delimiter,
  type OpenBoundaries,
  type PartHeader,
} from './mime-lines.js'
import {
  decodeQuotedPrintable,
  encodeBase64,
  encodeText,
  hasLongLine,
  isSevenBit,
  rewrapBase64,
} from './transfer-encoding.js'

export interface SevenBitMessage {
  /** The very Buffer that came in where nothing had to change. */
  readonly message: Buffer
  /** Octets beyond ASCII, or NUL, remain in a part that must not be changed: to be sent as 8BITMIME (RFC 6152) or not. */
  readonly isEightBit: boolean
  /** Lines over 998 octets remain in such a part. */
  readonly hasLongLines: boolean
  /** An address of the header stands there in UTF-8: to be sent with SMTPUTF8 (RFC 6531) or not. */
  readonly needsSmtpUtf8: boolean
}

export interface SevenBitRules {
  /**
   * Whether the message goes where only SMTPUTF8 leads, so that its header names everybody as they are. Otherwise addresses
   * that ASCII cannot hold become a form that can only be read, but for the author's: nobody may be made of no address.
   */
  readonly isInternational?: boolean
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly octets: Buffer
}

interface Walk {
  readonly message: Buffer
  readonly edits: Edit[]
  readonly open: OpenBoundaries
  parts: number
  /** Of the first text that declares one; raw header octets are likely in it too. */
  charset: string | undefined
  isEightBit: boolean
  hasLongLines: boolean
  isInternational: boolean
  needsSmtpUtf8: boolean
}

/** What the body of a part asks of its header. */
interface Relabelling {
  readonly encoding?: string
  readonly charset?: string
}

type PartKind = 'message' | 'part'

const MAX_DEPTH = 100
const MAX_PARTS = 10_000
/** Signatures of the content, or pieces of a message that make sense only together (RFC 2046 §5.2.2). */
const KEPT_TYPES: ReadonlySet<string> = new Set([
  'multipart/signed',
  'multipart/encrypted',
  'message/partial',
])
/** Encodings that encode nothing; RFC 2045 §6.1 has 7bit where the field is missing. */
const IDENTITIES: ReadonlySet<string> = new Set(['', '7bit', '8bit', 'binary'])
const PLAIN: MediaType = { value: 'text/plain', parameters: [] }
const DIGEST_PART: MediaType = { value: 'message/rfc822', parameters: [] }

/** @param message CRLF line ends only */
export function toSevenBit(
  message: Buffer,
  { isInternational = false }: SevenBitRules = {},
): SevenBitMessage {
  if (isSevenBit(message)) return { message, isEightBit: false, hasLongLines: false, needsSmtpUtf8: false }
  const walk: Walk = {
    message,
    edits: [],
    open: new Map(),
    charset: undefined,
    parts: 0,
    isEightBit: false,
    hasLongLines: false,
    isInternational,
    needsSmtpUtf8: false,
  }
  walkEntity(walk, 0, 0, 'message', PLAIN)
  const { isEightBit, hasLongLines, needsSmtpUtf8 } = walk
  return { message: edited(walk), isEightBit, hasLongLines, needsSmtpUtf8 }
}

function edited({ message, edits }: Walk): Buffer {
  if (edits.length === 0) return message
  // The label of a part is known only after what is in it.
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

/**
 * One message or part with all that is in it.
 *
 * @returns the delimiter of an outer multipart that ends it, or undefined at the end of the message
 */
function walkEntity(
  walk: Walk,
  start: number,
  depth: number,
  kind: PartKind,
  defaultType: MediaType,
): Delimiter | undefined {
  if (depth > MAX_DEPTH) throw refusal(`the message has parts nested too deep, more than ${MAX_DEPTH}`)
  if (++walk.parts > MAX_PARTS) throw refusal(`the message has more than ${MAX_PARTS} parts`)
  const header = readPartHeader(walk.message, walk.open, start)
  const type = typeOf(header) ?? defaultType
  const charset = parameter(type, 'charset')
  if (type.value.startsWith('text/')) walk.charset ??= charset
  const { delimiter, relabelling } = walkBody(walk, header, type, depth)
  fixHeader(walk, header, relabelling, kind, depth)
  return delimiter
}

function walkBody(
  walk: Walk,
  header: PartHeader,
  type: MediaType,
  depth: number,
): { delimiter: Delimiter | undefined; relabelling: Relabelling } {
  if (header.delimiter || header.isLast) return { delimiter: header.delimiter, relabelling: {} }
  const encoding = encodingOf(header)
  const isContainer = !KEPT_TYPES.has(type.value)
  const wasEightBit = walk.isEightBit
  if (isContainer && type.value.startsWith('multipart/')) {
    walk.isEightBit = false
    const delimiter = walkMultipart(walk, header, type, depth)
    return { delimiter, relabelling: containerLabel(walk, encoding, wasEightBit) }
  }
  if (isContainer && type.value === 'message/rfc822' && IDENTITIES.has(encoding)) {
    walk.isEightBit = false
    const delimiter = walkEntity(walk, header.bodyStart, depth + 1, 'message', PLAIN)
    return { delimiter, relabelling: containerLabel(walk, encoding, wasEightBit) }
  }
  const delimiter = findDelimiter(walk.message, walk.open, header.bodyStart)
  const end = delimiter?.contentEnd ?? walk.message.length
  const body = walk.message.subarray(header.bodyStart, end)
  if (
    !isContainer ||
    !(IDENTITIES.has(encoding) || encoding === 'base64' || encoding === 'quoted-printable')
  ) {
    keep(walk, body)
    return { delimiter, relabelling: {} }
  }
  const isWhole = delimiter === undefined && depth === 0
  return { delimiter, relabelling: encodeLeaf(walk, header.bodyStart, body, { type, encoding, isWhole }) }
}

/** RFC 2045 §6.4: the label of a container is the widest of what is in it. */
function containerLabel(walk: Walk, encoding: string, wasEightBit: boolean): Relabelling {
  const isSeven = !walk.isEightBit
  walk.isEightBit ||= wasEightBit
  return isSeven && (encoding === '8bit' || encoding === 'binary') ? { encoding: '7bit' } : {}
}

/** What may not be changed, or in an encoding that nobody here knows. */
function keep(walk: Walk, body: Buffer): void {
  walk.isEightBit ||= !isAscii(body) || body.includes(0)
  walk.hasLongLines ||= hasLongLine(body)
}

function walkMultipart(
  walk: Walk,
  header: PartHeader,
  type: MediaType,
  depth: number,
): Delimiter | undefined {
  const { message, open } = walk
  const boundary = parameter(type, 'boundary')?.trimEnd() ?? ''
  const isOurs = boundary !== '' && !open.has(boundary)
  if (isOurs) open.set(boundary, depth)
  let delimiter = findDelimiter(message, open, header.bodyStart)
  const preambleEnd = delimiter?.contentEnd ?? message.length
  const hasParts = delimiter?.level === depth && isOurs
  if (!hasParts && !isSevenBit(message.subarray(header.bodyStart, preambleEnd)))
    throw refusal('the message has a multipart without its parts')
  cleanFiller(walk, header.bodyStart, preambleEnd)
  const partType = type.value === 'multipart/digest' ? DIGEST_PART : PLAIN
  while (isOurs && delimiter?.level === depth && !delimiter.closes)
    delimiter = walkEntity(walk, delimiter.next, depth + 1, 'part', partType)
  if (!isOurs) return delimiter
  open.delete(boundary)
  if (delimiter?.level !== depth) return delimiter
  const epilogue = delimiter.next
  delimiter = findDelimiter(message, open, epilogue)
  cleanFiller(walk, epilogue, delimiter?.contentEnd ?? message.length)
  return delimiter
}

/** Preamble and epilogue, which no reader shows (RFC 2046 §5.1.1). */
function cleanFiller(walk: Walk, start: number, end: number): void {
  const filler = walk.message.subarray(start, end)
  if (isSevenBit(filler)) return
  const text = filler
    .toString('latin1')
    .replace(/[\0\x80-\xff]/g, '?')
    .replace(/[^\n]{900}/g, '$&\r\n')
  walk.edits.push({ start, end, octets: Buffer.from(text, 'latin1') })
}

function encodeLeaf(
  walk: Walk,
  start: number,
  body: Buffer,
  part: { readonly type: MediaType; readonly encoding: string; readonly isWhole: boolean },
): Relabelling {
  const { type, encoding } = part
  if (isSevenBit(body)) return encoding === '8bit' || encoding === 'binary' ? { encoding: '7bit' } : {}
  const replace = (octets: Buffer): void => {
    // Base64 has no line end of its own; the message does.
    const pieces = part.isWhole && octets.at(-1) !== 0x0a ? [octets, Buffer.from('\r\n')] : [octets]
    walk.edits.push({ start, end: start + body.length, octets: Buffer.concat(pieces) })
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
  if (chosen === 'base64' || !part.isWhole) replace(encoded)
  else walk.edits.push({ start, end: start + body.length, octets: encoded })
  const charset = charsetToDeclare(type, content)
  return charset === undefined ? { encoding: chosen } : { encoding: chosen, charset }
}

/** Other kinds of text than plain tell their charset themselves, or have a default of their own (RFC 6657 §3). */
function charsetToDeclare(type: MediaType, content: Buffer): string | undefined {
  if (!type.value.startsWith('text/') || isAscii(content) || parameter(type, 'charset') !== undefined)
    return undefined
  if (isUtf8(content)) return 'utf-8'
  return type.value === 'text/plain' ? 'unknown-8bit' : undefined
}

/** Fields in 7 bits, and labels for what the body has become. */
function fixHeader(walk: Walk, header: PartHeader, label: Relabelling, kind: PartKind, depth: number): void {
  const missing = new Map<string, string>()
  if (label.encoding !== undefined)
    missing.set('content-transfer-encoding', `Content-Transfer-Encoding: ${label.encoding}`)
  if (label.charset !== undefined)
    missing.set('content-type', `Content-Type: text/plain; charset=${label.charset}`)
  // Without it the other two mean nothing (RFC 2045 §4).
  if (missing.size > 0 && kind === 'message') missing.set('mime-version', 'MIME-Version: 1.0')
  const charset = walk.charset ?? parameter(typeOf(header) ?? PLAIN, 'charset')
  if (depth === 0) walk.isInternational ||= header.fields.some(field => isInternationalAuthor(field, charset))
  // A message in a message is to be read and not answered.
  const addresses = depth === 0 && walk.isInternational ? 'utf8' : 'group'
  for (const field of header.fields) {
    const octets = fixedField(field, label, { charset, addresses })
    missing.delete(field.name)
    if (octets === undefined) continue
    walk.needsSmtpUtf8 ||= hasNonAscii(octets)
    if (octets === field.raw) continue
    const lineEnd = field.raw.length === field.end - field.start ? '' : '\r\n'
    walk.edits.push({
      start: header.start + field.start,
      end: header.start + field.end,
      octets: Buffer.from(`${octets}${lineEnd}`, 'latin1'),
    })
  }
  if (missing.size === 0) return
  const added = [...missing.values()].map(line => `${line}\r\n`).join('')
  walk.edits.push({ start: header.end, end: header.end, octets: Buffer.from(added, 'latin1') })
}

/** @returns the field without the CRLF at its end; undefined where it stays */
function fixedField(field: FieldLines, label: Relabelling, rules: DowngradeRules): string | undefined {
  if (field.name === 'content-transfer-encoding' && label.encoding !== undefined)
    return `Content-Transfer-Encoding: ${label.encoding}`
  if (field.name === 'content-type' && label.charset !== undefined) {
    const type = readMediaType(decodeOctets(unfoldedValue(field.raw), rules.charset))
    return writeMediaType('Content-Type', {
      value: type.value || 'text/plain',
      parameters: [...type.parameters, ['charset', label.charset]],
    })
  }
  return needsDowngrade(field.raw) ? downgradeField(field, rules) : undefined
}

/** Without an address in From nobody has written the message, and no policy of a domain (RFC 7489 §6.6.1) can be asked. */
function isInternationalAuthor(field: FieldLines, charset: string | undefined): boolean {
  if (field.name !== 'from' || !hasNonAscii(field.raw)) return false
  return hasNonAscii(downgradeField(field, { charset, addresses: 'utf8' }))
}

function typeOf({ fields }: PartHeader): MediaType | undefined {
  const field = fields.find(({ name }) => name === 'content-type')
  const type = field && readMediaType(labelOf(field))
  // RFC 2045 §5.2: what has no valid syntax is plain text.
  return type?.value.includes('/') ? type : undefined
}

function encodingOf({ fields }: PartHeader): string {
  const field = fields.find(({ name }) => name === 'content-transfer-encoding')
  // Some write `8bit;` or add a comment.
  return field ? (/^[^\s;(]*/.exec(labelOf(field).toLowerCase())?.[0] ?? '') : ''
}

/** As it reads once the field is 7-bit. */
function labelOf(field: FieldLines): string {
  return withoutNul(unfoldedValue(field.raw))
}

function refusal(message: string): AppError {
  return new AppError('validation_error', message, { path: 'body' })
}
