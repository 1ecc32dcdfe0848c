/**
 * Reads header sections: field by field with positions, and as a lenient lookup table.
 *
 * Lines end in CRLF or LF. `readFields` keeps every octet and uses no regular expression per character; `HeaderSection` tolerates the
 * broken headers of returned mail. Never throws: a line without a colon is a field without a name, which the lookup table ignores. Linear.
 * Standards: RFC 5322 §2.2 (fields), §2.2.3 (folding).
 */
import { decodeUnknownText } from './encoded-word.js'

export interface HeaderField {
  /** Lower case, without white space before the colon; empty if the line has no colon. */
  readonly name: string
  /** Octets as a latin1 string, folded, without the final line ending. */
  readonly raw: string
  /** Offset in the text. */
  readonly start: number
  /** Offset after its line ending. */
  readonly end: number
}

const TAB = 0x09
const SP = 0x20
const CR = 0x0d

/**
 * @param text header section without the empty line
 * @param most maximum number of fields
 * @returns in order; one more than `most` if there are more
 */
export function readFields(text: string, most: number): HeaderField[] {
  const fields: HeaderField[] = []
  let start = 0
  while (start < text.length && fields.length <= most) {
    let next = afterLine(text, start)
    // Past the end charCodeAt returns NaN, which is neither.
    for (let first = text.charCodeAt(next); first === SP || first === TAB;) {
      next = afterLine(text, next)
      first = text.charCodeAt(next)
    }
    const raw = text.slice(start, endOfLine(text, next))
    fields.push({ name: nameOf(raw), raw, start, end: next })
    start = next
  }
  return fields
}

/** Everything after the colon on one line, trimmed. */
export function unfoldedValue(field: string): string {
  const value = field.slice(field.indexOf(':') + 1)
  return (value.includes('\n') ? value.replace(/\r?\n/g, '') : value).trim()
}

/**
 * The value of a field that labels a MIME part. NUL is replaced, not removed, since joining its surroundings could form a different label.
 */
export function safeLabelValue({ raw }: HeaderField): string {
  return unfoldedValue(raw).replaceAll('\0', '?')
}

/** After the line ending, or the end of the text. */
function afterLine(text: string, from: number): number {
  const at = text.indexOf('\n', from)
  return at < 0 ? text.length : at + 1
}

/** Before the line ending that ends at `next`, if any. */
function endOfLine(text: string, next: number): number {
  if (text[next - 1] !== '\n') return next
  return text.charCodeAt(next - 2) === CR ? next - 2 : next - 1
}

function nameOf(raw: string): string {
  const colon = raw.indexOf(':')
  return colon <= 0 ? '' : raw.slice(0, colon).trimEnd().toLowerCase()
}

export const MAX_SECTION = 65_536
const MAX_LINES = 2_000
const MAX_FIELDS = 500
/** Of an unfolded value; bounds the header map of an original message. */
const MAX_VALUE = 4_096

/** RFC 5322 §2.2: printable ASCII except the colon. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]{1,100}$/

export function isFieldName(name: string): boolean {
  return FIELD_NAME.test(name)
}

interface NamedValue {
  readonly name: string
  /** Unfolded with single spaces, trimmed, not decoded. */
  readonly value: string
}

export class HeaderSection {
  readonly #fields: readonly NamedValue[]

  constructor(fields: readonly HeaderField[]) {
    this.#fields = fields
      .filter(({ name }) => isFieldName(name))
      .slice(0, MAX_FIELDS)
      .map(({ name, raw }) => ({ name, value: oneLine(raw) }))
  }

  get size(): number {
    return this.#fields.length
  }

  has(name: string): boolean {
    return this.#fields.some(field => field.name === name)
  }

  /** The first value, decoded; '' if absent. */
  text(name: string): string {
    return decodeUnknownText(this.raw(name))
  }

  /** The first value, as written; '' if absent. */
  raw(name: string): string {
    return this.#fields.find(field => field.name === name)?.value ?? ''
  }

  /** All values, as written. */
  all(name: string): readonly string[] {
    return this.#fields.filter(field => field.name === name).map(({ value }) => value)
  }

  /** The first value per name, decoded. */
  toMap(limit: number): ReadonlyMap<string, string> {
    const map = new Map<string, string>()
    for (const { name, value } of this.#fields) {
      if (map.size >= limit) break
      if (!map.has(name)) map.set(name, decodeUnknownText(value))
    }
    return map
  }
}

/** The header of a quoted message, up to its empty line. Leading empty lines are ignored. */
export function readMessageHeader(message: string): HeaderSection {
  const from = /^(?:\r?\n)+/.exec(message)?.[0].length ?? 0
  const section = message.slice(from, from + MAX_SECTION)
  const end = section.search(/\n\r?\n/)
  return readHeaderSection(end < 0 ? section : section.slice(0, end))
}

/** @param section without an empty line */
export function readHeaderSection(section: string): HeaderSection {
  return new HeaderSection(readFields(section.slice(0, MAX_SECTION), MAX_LINES))
}

/** Some programs fold without white space, others with a lot; readers show one space. */
function oneLine(raw: string): string {
  const value = raw.slice(raw.indexOf(':') + 1)
  const unfolded = value.includes('\n')
    ? value
        .split('\n')
        .map(line => line.trim())
        .join(' ')
    : value
  return unfolded.trim().slice(0, MAX_VALUE)
}
