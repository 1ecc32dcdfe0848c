/**
 * Where the parts of a MIME message begin and end: headers of parts, and the delimiter lines between them.
 *
 * Called by the 7-bit conversion as it walks through a message. Every line that begins with `--` is looked at once, however
 * deep the parts are nested. Pure but for the walk it is handed.
 * Standards: RFC 2046 §5.1.1 (delimiters; the CRLF before one belongs to it), RFC 2045 §3 (headers of parts).
 * Fails: AppError `validation_error` for a part whose header is out of bounds.
 */
import { AppError } from '../../core/errors.js'
import { fieldLines, type FieldLines } from './field-lines.js'
import { MAX_HEADER_FIELDS, MAX_HEADER_OCTETS } from './relayed-header.js'

/** Multiparts that are open where the walk stands: boundary to level. The outer one wins where two are the same. */
export type OpenBoundaries = Map<string, number>

/** A line that ends a part. */
export interface Delimiter {
  /** Where the content before it ends; its CRLF is not part of that. */
  readonly contentEnd: number
  /** Where the line after it begins. */
  readonly next: number
  /** Of the multipart it belongs to. */
  readonly level: number
  readonly closes: boolean
}

export interface PartHeader {
  readonly fields: readonly FieldLines[]
  readonly start: number
  /** After the last field. */
  readonly end: number
  readonly bodyStart: number
  /** The part ends with its header. */
  readonly delimiter?: Delimiter
  /** Neither body nor delimiter: the message ends with the header. */
  readonly isLast: boolean
}

/** RFC 2046 §5.1.1 allows 70; some programs write more. */
const MAX_BOUNDARY = 200
const LINE_OF_DASHES = Buffer.from('\n--', 'latin1')

/** @param from start of a line */
export function findDelimiter(message: Buffer, open: OpenBoundaries, from: number): Delimiter | undefined {
  if (open.size === 0) return undefined
  let at = message.indexOf(LINE_OF_DASHES, from - 1)
  while (at >= 0) {
    const delimiter = readDelimiter(message, open, at + 1, from)
    if (delimiter) return delimiter
    at = message.indexOf(LINE_OF_DASHES, at + 1)
  }
  return undefined
}

/**
 * @param lineStart of a line that begins with `--`
 * @param contentStart of the content that it may end
 */
function readDelimiter(
  message: Buffer,
  open: OpenBoundaries,
  lineStart: number,
  contentStart: number,
): Delimiter | undefined {
  if (!mayBegin(open, message[lineStart + 2])) return undefined
  // The longest line that can match, its white space included; a longer one holds no line end here and fits no boundary.
  const window = message.toString('latin1', lineStart + 2, lineStart + 2 + MAX_BOUNDARY + 16)
  const lineEnd = window.indexOf('\r\n')
  if (lineEnd < 0 && lineStart + 2 + window.length < message.length) return undefined
  const text = (lineEnd < 0 ? window : window.slice(0, lineEnd)).trimEnd()
  const own = open.get(text)
  const level = own ?? (text.endsWith('--') ? open.get(text.slice(0, -2)) : undefined)
  if (level === undefined) return undefined
  return {
    contentEnd: Math.max(contentStart, lineStart - 2),
    next: lineEnd < 0 ? message.length : lineStart + 2 + lineEnd + 2,
    level,
    closes: own === undefined,
  }
}

/** Most lines that begin with `--` are no delimiters, and a hostile message may have millions: one octet tells most of them. */
function mayBegin(open: OpenBoundaries, octet: number | undefined): boolean {
  for (const boundary of open.keys()) if (boundary.charCodeAt(0) === octet) return true
  return false
}

/** @param start of the part's first line */
export function readPartHeader(message: Buffer, open: OpenBoundaries, start: number): PartHeader {
  let at = start
  for (;;) {
    if (at >= message.length) return partHeader(message, start, at, { isLast: true })
    if (message[at] === 0x0d && message[at + 1] === 0x0a)
      return partHeader(message, start, at, { isLast: false })
    if (message[at] === 0x2d && message[at + 1] === 0x2d) {
      const delimiter = readDelimiter(message, open, at, at)
      if (delimiter) return partHeader(message, start, at, { isLast: false, delimiter })
    }
    const lineEnd = message.indexOf(0x0a, at)
    at = lineEnd < 0 ? message.length : lineEnd + 1
    if (at - start > MAX_HEADER_OCTETS) throw refusal(`is longer than ${MAX_HEADER_OCTETS} octets`)
  }
}

function partHeader(
  message: Buffer,
  start: number,
  end: number,
  how: { readonly isLast: boolean; readonly delimiter?: Delimiter },
): PartHeader {
  const fields = fieldLines(message.toString('latin1', start, end), MAX_HEADER_FIELDS)
  if (fields.length > MAX_HEADER_FIELDS) throw refusal(`has more than ${MAX_HEADER_FIELDS} fields`)
  const hasBody = !how.isLast && !how.delimiter
  return { fields, start, end, bodyStart: hasBody ? end + 2 : end, ...how }
}

function refusal(why: string): AppError {
  return new AppError('validation_error', `the header of a part ${why}`, { path: 'header' })
}
