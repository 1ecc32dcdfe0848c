/**
 * Rows on their way from the reader thread to the importer, as compact as possible since millions are built, copied and parsed.
 *
 * A contact is a JSON array of values in fixed order, including its derived columns; a rejection is an object. Pure. Never stored.
 */
import type { SuppressionReason } from '../../../deliverability/suppressions/suppression-store.js'
import type { Attributes } from '../../contacts/contact.js'
import { mergeAttributes, storedForm } from '../../contacts/compared-attributes.js'
import type { Rejection } from '../import.js'
import type { ParsedRow, ReadRow } from './read-row.js'

const FIRST_OCTETS = 1_048_576
const [OPEN, COMMA, CLOSE] = [0x5b, 0x2c, 0x5d]

/** Rows of a run, encoded and stored outside the heap: tens of thousands of short-lived strings would burden the garbage collector. */
export class EncodedRows {
  private text = Buffer.allocUnsafeSlow(FIRST_OCTETS)
  /** Start of each row, and the end of the last. */
  private readonly starts = [0]
  /** Row numbers in sorted order; undefined for insertion order. */
  private inOrder: Uint32Array | undefined

  get count(): number {
    return this.starts.length - 1
  }

  get octets(): number {
    return this.starts.at(-1) ?? 0
  }

  add(row: ParsedRow | Rejection): void {
    const text = encode(row)
    const start = this.octets
    // The maximum in UTF-8.
    const most = 3 * text.length
    if (start + most > this.text.length) this.grow(start + most)
    this.starts.push(start + this.text.write(text, start))
  }

  /** @param compare compares row numbers */
  order(compare: (one: number, other: number) => number): void {
    this.inOrder = Uint32Array.from({ length: this.count }, (_, at) => at).sort(compare)
  }

  /** Rows in order, as a JSON array. */
  piece(from: number, to: number): Uint8Array<ArrayBuffer> {
    const end = Math.min(to, this.count)
    let octets = 2 + Math.max(0, end - from - 1)
    for (let at = from; at < end; at += 1) octets += this.lengthOf(this.rowAt(at))
    const piece = Buffer.allocUnsafeSlow(octets)
    piece[0] = OPEN
    let written = 1
    for (let at = from; at < end; at += 1) {
      if (at > from) piece[written++] = COMMA
      const row = this.rowAt(at)
      const start = this.starts[row] ?? 0
      written += this.text.copy(piece, written, start, start + this.lengthOf(row))
    }
    piece[written] = CLOSE
    return piece
  }

  private rowAt(at: number): number {
    return this.inOrder?.[at] ?? at
  }

  private lengthOf(row: number): number {
    return (this.starts[row + 1] ?? 0) - (this.starts[row] ?? 0)
  }

  private grow(least: number): void {
    const text = Buffer.allocUnsafeSlow(Math.max(2 * this.text.length, least))
    this.text.copy(text, 0, 0, this.octets)
    this.text = text
  }
}

/** In this order. */
type Values = readonly [
  line: number,
  email: string,
  firstName: string | null,
  lastName: string | null,
  attributes: Attributes | null,
  subscribed: boolean | null,
  tags: readonly string[] | null,
  lists: readonly string[] | null,
  suppress: SuppressionReason | null,
  firstFolded: string | null,
  lastFolded: string | null,
  searchText: string,
  attributesText: string,
  comparedText: string | null,
]

/** Computes the derived columns here, to spare the main thread. */
function encode(row: ParsedRow | Rejection): string {
  if ('reason' in row) return JSON.stringify(row)
  const { line, email, firstName, lastName, attributes, subscribed, tags, lists, suppress } = row
  const form = storedForm({
    email,
    firstName,
    lastName,
    attributes: attributes ? mergeAttributes(attributes, {}) : {},
  })
  const values: unknown[] = [
    ...[line, email, firstName, lastName, attributes, subscribed, tags.length > 0 ? tags : null],
    ...[lists.length > 0 ? lists : null, suppress],
    ...[form.firstFolded, form.lastFolded, form.searchText, form.attributesText, form.comparedText],
  ]
  return JSON.stringify(values)
}

/** @param octets JSON of an array of rows */
export function decodeRows(octets: Uint8Array): ReadRow[] {
  const text = Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString('utf8')
  return (JSON.parse(text) as (Values | Rejection)[]).map(row => ('reason' in row ? row : contactOf(row)))
}

function contactOf(values: Values): ReadRow {
  return {
    line: values[0],
    email: values[1],
    firstName: values[2],
    lastName: values[3],
    attributes: values[4],
    subscribed: values[5],
    tags: values[6] ?? NONE,
    lists: values[7] ?? NONE,
    suppress: values[8],
    form: {
      firstFolded: values[9],
      lastFolded: values[10],
      searchText: values[11],
      attributesText: values[12],
      comparedText: values[13],
    },
  }
}

const NONE: readonly string[] = []
