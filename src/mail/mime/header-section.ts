/**
 * A header section as it is looked up, read leniently: returned mail holds headers of every kind of breakage.
 *
 * Called by the readers of inbound mail, for messages, their parts, and the original message that a bounce quotes. Text may be
 * octets (a latin1 string) or characters already.
 * Standards: RFC 5322 §2.2 (fields, folding).
 * Fails: never; lines that are no field are passed over. At most 64 KB and 500 fields are looked at.
 */
import { decodeUnknownText } from './encoded-word.js'
import { readFields, type HeaderField } from './header-fields.js'

export const MAX_SECTION = 65_536
const MAX_LINES = 2_000
const MAX_FIELDS = 500
/** Of one unfolded value; header maps of originals must not become large. */
const MAX_VALUE = 4_096

/** RFC 5322 §2.2: printable ASCII except the colon. */
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]{1,100}$/

export function isFieldName(name: string): boolean {
  return FIELD_NAME.test(name)
}

interface NamedValue {
  /** Lower case. */
  readonly name: string
  /** Unfolded to single blanks, white space around it removed; not decoded. */
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

  /** The first of that name, decoded; empty where there is none. */
  text(name: string): string {
    return decodeUnknownText(this.raw(name))
  }

  /** The first of that name as it was written. */
  raw(name: string): string {
    return this.#fields.find(field => field.name === name)?.value ?? ''
  }

  /** All of that name as they were written. */
  all(name: string): readonly string[] {
    return this.#fields.filter(field => field.name === name).map(({ value }) => value)
  }

  /** First of each name, decoded. */
  toMap(limit: number): ReadonlyMap<string, string> {
    const map = new Map<string, string>()
    for (const { name, value } of this.#fields) {
      if (map.size >= limit) break
      if (!map.has(name)) map.set(name, decodeUnknownText(value))
    }
    return map
  }
}

/** The header of a message that somebody quotes, up to its empty line. Empty lines before it are some relay's carelessness. */
export function readMessageHeader(message: string): HeaderSection {
  const from = /^(?:\r?\n)+/.exec(message)?.[0].length ?? 0
  const section = message.slice(from, from + MAX_SECTION)
  const end = section.search(/\n\r?\n/)
  return readHeaderSection(end < 0 ? section : section.slice(0, end))
}

/** @param section without an empty line in it */
export function readHeaderSection(section: string): HeaderSection {
  return new HeaderSection(readFields(section.slice(0, MAX_SECTION), MAX_LINES))
}

/** Some fold where there is no blank, some where there are many: readers show one. */
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
