/**
 * Serialization of rows from the reader thread to the importer, as compact as possible since it is built, copied and parsed for
 * millions of rows. A contact is an array of values in fixed order, including its derived columns; a rejection is an object.
 *
 * Written by `row-texts.ts`, read by `import-reader.ts`. Pure. Never stored.
 */
import { mergeAttributes, storedForm } from '../../contacts/compared-attributes.js'
import type { SuppressionReason } from '../../../deliverability/suppressions/suppression-store.js'
import type { Attributes } from '../../contacts/contact.js'
import type { Rejection } from '../import.js'
import type { ReadRow } from './import-reader-protocol.js'
import type { SaidRow } from './read-row.js'

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

/** Computes the derived columns here, to spare the importer's thread. */
export function rowText(row: SaidRow | Rejection): string {
  if ('reason' in row) return JSON.stringify(row)
  const { line, email, firstName, lastName, attributes, subscribed, tags, lists, suppress } = row
  const form = storedForm({
    ...{ email, firstName, lastName },
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
export function readRowTexts(octets: Uint8Array): ReadRow[] {
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
