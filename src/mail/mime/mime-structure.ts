/**
 * Parses the structure of a MIME message within limits: the only MIME parser.
 *
 * Strict for the 7-bit conversion of relayed mail, lenient for inbound mail. Records positions; copies and decodes nothing. mailparser is
 * not used: it has no limits for hostile input, and signed parts must keep their octets. One pass over the lines, whatever the nesting.
 * Lines end in CRLF or LF. In strict mode, exceeding a limit throws AppError `validation_error`; in lenient mode, the excess is ignored or
 * not parsed.
 * Standards: RFC 2045 §3 (part headers), §5.2 (default type), RFC 2046 §5.1.1 (delimiters), §5.1.5 (digest).
 */
import { AppError } from '../../core/errors.js'
import { type HeaderField, isFieldName, readFields, safeLabelValue } from './header-fields.js'
import { DelimiterScan, type Delimiter } from './delimiter-scan.js'
import { parameter, readMediaType, type MediaType } from './media-type.js'

/** A message or a part. Positions are octets from the start of the input. */
export interface MimeEntity {
  /** As written; their positions are relative to `start`. */
  readonly fields: readonly HeaderField[]
  /** As labelled, or the default of RFC 2045 §5.2 and RFC 2046 §5.1.5 if absent or without a slash. */
  readonly type: MediaType
  /** Content-Transfer-Encoding, lower case, without comments; empty if absent. */
  readonly encoding: string
  readonly start: number
  readonly headerEnd: number
  /** False if it ends with its header, without an empty line. */
  readonly hasBody: boolean
  readonly bodyStart: number
  /** End of the content; the line ending before a delimiter is not included. */
  readonly end: number
  /** Parts of a multipart, or the message in a message/rfc822, if the rules open it. */
  readonly parts: readonly MimeEntity[]
  /** Text before the first and after the last delimiter, which readers do not show. */
  readonly preamble?: Span
  readonly epilogue?: Span
}

export interface Span {
  readonly start: number
  readonly end: number
}

export interface MimeRules {
  /**
   * Accepts common errors: empty lines before the header, parts without a header, indented delimiters, a boundary other than the declared
   * one.
   */
  readonly isLenient: boolean
  readonly maxDepth: number
  /** On all levels, including the message itself. */
  readonly maxParts: number
  /** Octets per header. */
  readonly maxHeaderOctets: number
  /** Per header. */
  readonly maxFields: number
  /** In all headers. */
  readonly maxFieldsOfAll: number
  /** Whether to parse into a multipart, or a message within the message. */
  readonly opens: (type: string, encoding: string) => boolean
}

/** For mail from anywhere: parses multiparts, but not attached messages. */
export const LENIENT: MimeRules = {
  isLenient: true,
  maxDepth: 8,
  maxParts: 128,
  maxHeaderOctets: 65_536,
  maxFields: 2_000,
  maxFieldsOfAll: 20_000,
  opens: type => type.startsWith('multipart/'),
}

const PLAIN: MediaType = { value: 'text/plain', parameters: [] }
const DIGEST_PART: MediaType = { value: 'message/rfc822', parameters: [] }
/** Each guess rescans a multipart. */
const MAX_GUESSES = 3
/** Octets of a multipart searched for an undeclared delimiter. */
const MAX_GUESSED = 65_536

/** @throws AppError validation_error in strict mode */
export function readMimeStructure(message: Buffer, rules: MimeRules): MimeEntity {
  const start = rules.isLenient ? afterEmptyLines(message) : 0
  return new StructureReader(message, rules).readEntity(start, 0, PLAIN).entity
}

/** Parts with content, in order; the message itself if it has no parts. */
export function leavesOf(entity: MimeEntity): MimeEntity[] {
  return entity.parts.length === 0 ? [entity] : entity.parts.flatMap(leavesOf)
}

/** An entity and the delimiter that ended it; none at the end of the message. */
interface ParsedEntity {
  readonly entity: MimeEntity
  readonly delimiter: Delimiter | undefined
}

interface ParsedHeader {
  readonly fields: readonly HeaderField[]
  readonly headerEnd: number
  readonly bodyStart: number
  readonly hasBody: boolean
  /** Set if the part ends with its header. */
  readonly delimiter?: Delimiter
}

type Body = Pick<MimeEntity, 'parts' | 'preamble' | 'epilogue'> & {
  readonly delimiter: Delimiter | undefined
}

class StructureReader {
  private readonly message: Buffer
  private readonly rules: MimeRules
  private readonly scan: DelimiterScan
  private parts = 0
  private fields = 0
  private guesses = 0

  constructor(message: Buffer, rules: MimeRules) {
    this.message = message
    this.rules = rules
    this.scan = new DelimiterScan(message, rules.isLenient)
  }

  readEntity(start: number, depth: number, defaultType: MediaType): ParsedEntity {
    this.parts += 1
    this.checkLimits(depth)
    const header = this.readHeader(start, depth)
    const { fields, headerEnd, bodyStart, hasBody } = header
    const type = typeOf(fields) ?? defaultType
    const encoding = encodingOf(fields)
    const isOpened = hasBody && depth < this.openDepth && this.rules.opens(type.value, encoding)
    const { delimiter, ...body }: Body = !hasBody
      ? { parts: [], delimiter: header.delimiter }
      : isOpened
        ? this.readBody(type, bodyStart, depth)
        : { parts: [], delimiter: this.scan.find(bodyStart) }
    const end = hasBody ? (delimiter?.contentEnd ?? this.message.length) : bodyStart
    const entity = { fields, type, encoding, start, headerEnd, hasBody, bodyStart, end, ...body }
    return { entity, delimiter }
  }

  /** In strict mode, deeper parts are read in order to be rejected. */
  private get openDepth(): number {
    return this.rules.isLenient ? this.rules.maxDepth : Infinity
  }

  private checkLimits(depth: number): void {
    const { isLenient, maxDepth, maxParts } = this.rules
    if (isLenient) return
    if (depth > maxDepth) throw refusal(`has parts nested more than ${maxDepth} levels deep`)
    if (this.parts > maxParts) throw refusal(`has more than ${maxParts} parts`)
  }

  private readBody(type: MediaType, bodyStart: number, depth: number): Body {
    if (type.value.startsWith('multipart/')) return this.readMultipart(type, bodyStart, depth)
    const { entity, delimiter } = this.readEntity(bodyStart, depth + 1, PLAIN)
    return { parts: [entity], delimiter }
  }

  private readMultipart(type: MediaType, bodyStart: number, depth: number): Body {
    const { scan, message } = this
    const stated = parameter(type, 'boundary')?.trimEnd() ?? ''
    let first = scan.openAt(stated, depth, bodyStart)
    if (first?.level !== depth && this.rules.isLenient) {
      scan.close(depth)
      first = scan.openAt(this.guessBoundary(bodyStart, first), depth, bodyStart)
    }
    if (first?.level !== depth) {
      scan.close(depth)
      return { parts: [], delimiter: first }
    }
    const preamble = { start: bodyStart, end: first.contentEnd }
    const partType = type.value === 'multipart/digest' ? DIGEST_PART : PLAIN
    const parts: MimeEntity[] = []
    let delimiter: Delimiter | undefined = first
    while (delimiter?.level === depth && !delimiter.closes) {
      // The remaining parts are ignored.
      if (this.isFull) return { parts, preamble, delimiter: undefined }
      const part = this.readEntity(delimiter.next, depth + 1, partType)
      parts.push(part.entity)
      delimiter = part.delimiter
    }
    scan.close(depth)
    if (delimiter?.level !== depth) return { parts, preamble, delimiter }
    const start = delimiter.next
    delimiter = scan.find(start)
    return { parts, preamble, epilogue: { start, end: delimiter?.contentEnd ?? message.length }, delimiter }
  }

  private get isFull(): boolean {
    const { isLenient, maxParts, maxFieldsOfAll } = this.rules
    return isLenient && (this.parts >= maxParts || this.fields >= maxFieldsOfAll)
  }

  /**
   * A relay rewrote the delimiters but not the label: the first `--` line followed by a part's header is taken as delimiter.
   *
   * @param end the delimiter of an outer multipart that ends this one, if any
   */
  private guessBoundary(bodyStart: number, end: Delimiter | undefined): string {
    if (++this.guesses > MAX_GUESSES) return ''
    const bodyEnd = Math.min(end?.contentEnd ?? this.message.length, bodyStart + MAX_GUESSED)
    const body = this.message.toString('latin1', bodyStart, bodyEnd)
    return /^--(\S{1,200})[ \t]{0,80}\r?\ncontent-[a-z-]{1,40}:/im.exec(body)?.[1] ?? ''
  }

  private readHeader(start: number, depth: number): ParsedHeader {
    const { scan, message } = this
    const { isLenient, maxHeaderOctets } = this.rules
    let at = start
    for (;;) {
      if (at >= message.length) return this.toHeader(start, at, { bodyStart: at, hasBody: false }, depth)
      const bodyStart = afterEmptyLine(message, at)
      if (bodyStart > 0) return this.toHeader(start, at, { bodyStart, hasBody: true }, depth)
      const delimiter = scan.at(at)
      if (delimiter) return this.toHeader(start, at, { bodyStart: at, hasBody: false, delimiter }, depth)
      at = scan.afterLine(at)
      if (!isLenient && at - start > maxHeaderOctets)
        throw headerRefusal(`is longer than ${maxHeaderOctets} octets`)
    }
  }

  private toHeader(
    start: number,
    headerEnd: number,
    how: Omit<ParsedHeader, 'fields' | 'headerEnd'>,
    depth: number,
  ): ParsedHeader {
    const { isLenient, maxHeaderOctets, maxFields, maxFieldsOfAll } = this.rules
    const text = this.message.toString('latin1', start, Math.min(headerEnd, start + maxHeaderOctets))
    const fields = readFields(text, maxFields)
    this.fields += fields.length
    if (!isLenient && fields.length > maxFields) throw headerRefusal(`has more than ${maxFields} fields`)
    if (!isLenient && this.fields > maxFieldsOfAll)
      throw refusal(`has more than ${maxFieldsOfAll} header fields in its parts`)
    // Text in place of a header is taken as the body.
    const mayBeText = isLenient && start !== headerEnd && (depth > 0 || !how.hasBody)
    if (mayBeText && !fields.some(({ name }) => isFieldName(name)))
      return { fields: [], headerEnd: start, bodyStart: start, hasBody: true }
    return { fields, headerEnd, ...how }
  }
}

function typeOf(fields: readonly HeaderField[]): MediaType | undefined {
  const field = fields.find(({ name }) => name === 'content-type')
  const type = field && readMediaType(safeLabelValue(field))
  // RFC 2045 §5.2: an invalid type means text/plain.
  return type?.value.includes('/') ? type : undefined
}

function encodingOf(fields: readonly HeaderField[]): string {
  const field = fields.find(({ name }) => name === 'content-transfer-encoding')
  // Some write `8bit;` or add a comment.
  return field ? (/^[^\s;(]*/.exec(safeLabelValue(field).toLowerCase())?.[0] ?? '') : ''
}

/** @returns the start of the next line if this one is empty, else -1 */
function afterEmptyLine(message: Buffer, at: number): number {
  if (message[at] === 0x0a) return at + 1
  return message[at] === 0x0d && message[at + 1] === 0x0a ? at + 2 : -1
}

function afterEmptyLines(message: Buffer): number {
  let at = 0
  for (let next = afterEmptyLine(message, at); next > 0; next = afterEmptyLine(message, at)) at = next
  return at
}

function refusal(why: string): AppError {
  return new AppError('validation_error', `the message ${why}`, { path: 'body' })
}

function headerRefusal(why: string): AppError {
  return new AppError('validation_error', `the header of a part ${why}`, { path: 'header' })
}
