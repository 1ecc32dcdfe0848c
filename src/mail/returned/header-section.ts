/**
 * The header of a message or of a MIME part, read leniently: returned mail holds headers of every kind of breakage.
 *
 * Called by the MIME reader and for the original message that a bounce quotes. Bytes come as a string with one character
 * for each (latin1), lines end in LF.
 * Standards: RFC 5322 §2.2 (fields, folding), RFC 2045 §5.1 and RFC 2231 §3 (parameters).
 * Fails: never; lines that are no field are passed over. At most 64 KB and 500 fields are looked at.
 */
import { decodeFieldText } from './decode-text.js'

const MAX_SECTION = 65_536
const MAX_FIELDS = 500
/** Of one unfolded value; header maps of originals must not become large. */
const MAX_VALUE = 4_096

const FIELD = /^([\x21-\x39\x3b-\x7e]{1,100})[ \t]{0,80}:(.*)$/

export interface HeaderField {
  /** Lower case. */
  readonly name: string
  /** Unfolded, white space around it removed; not decoded. */
  readonly value: string
}

export class HeaderSection {
  readonly #fields: readonly HeaderField[]

  constructor(fields: readonly HeaderField[]) {
    this.#fields = fields
  }

  get size(): number {
    return this.#fields.length
  }

  has(name: string): boolean {
    return this.#fields.some(field => field.name === name)
  }

  /** The first of that name, decoded; empty where there is none. */
  text(name: string): string {
    return decodeFieldText(this.raw(name))
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
      if (!map.has(name)) map.set(name, decodeFieldText(value))
    }
    return map
  }
}

/** Header and what follows the empty line after it. */
export function splitHeader(message: string): { readonly header: HeaderSection; readonly body: string } {
  const from = leadingBlank(message)
  const end = message.indexOf('\n\n', from)
  const section = end < 0 ? message.slice(from) : message.slice(from, end)
  return { header: readHeader(section), body: end < 0 ? '' : message.slice(end + 2) }
}

/** Empty lines before a header are some relay's carelessness. */
function leadingBlank(message: string): number {
  let at = 0
  while (message[at] === '\n') at++
  return at
}

export function readHeader(section: string): HeaderSection {
  const fields: { name: string; value: string }[] = []
  for (const line of section.slice(0, MAX_SECTION).split('\n')) {
    const last = fields.at(-1)
    if (/^[ \t]/.test(line)) {
      if (last && last.value.length < MAX_VALUE)
        last.value = `${last.value} ${line.trim()}`.slice(0, MAX_VALUE)
      continue
    }
    const match = FIELD.exec(line)
    if (!match) continue
    if (fields.length >= MAX_FIELDS) break
    fields.push({ name: (match[1] ?? '').toLowerCase(), value: (match[2] ?? '').trim().slice(0, MAX_VALUE) })
  }
  return new HeaderSection(fields)
}

/** A value with parameters, such as Content-Type: the value in lower case, and the parameter asked for. */
export function readParameter(value: string, name: string): string | undefined {
  const pattern = new RegExp(`;\\s{0,80}${name}\\s{0,80}=\\s{0,80}(?:"([^"]{0,998})"|([^\\s;"]{1,998}))`, 'i')
  const match = pattern.exec(value)
  return match?.[1] ?? match?.[2]
}
