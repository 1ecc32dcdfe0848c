/** Codes for why a row of an import was rejected, from the text that is stored with it: for programs that say it in their own words. Pure. */

export const REJECTION_CODES = [
  'no_address',
  'invalid_address',
  'duplicate_address',
  'too_many_cells',
  'row_too_large',
  'value_of_other_type',
  'too_long',
  'too_many_entries',
  'unknown_status',
  'not_yes_or_no',
  'invalid_attributes',
  'too_many_attributes',
  'erased',
  'other',
] as const

export type RejectionCode = (typeof REJECTION_CODES)[number]

/** The first that matches counts; the texts are those of `reading/` and `core/csv.ts`. */
const TEXTS: readonly (readonly [RegExp, RejectionCode])[] = [
  [/^duplicate of the address /, 'duplicate_address'],
  [/^the address was erased$/, 'erased'],
  [/^the row has no address$/, 'no_address'],
  [/^the address /, 'invalid_address'],
  [/^the row (is|has a cell) larger than /, 'row_too_large'],
  [/^the row has .* cells/, 'too_many_cells'],
  [/ must be yes or no$/, 'not_yes_or_no'],
  [/^attributes must be /, 'invalid_attributes'],
  [/ must be an? /, 'value_of_other_type'],
  [/ is longer than \d+ characters$/, 'too_long'],
  [/^more than \d+ /, 'too_many_entries'],
  [/^unknown status /, 'unknown_status'],
  [/^the contact would exceed its attribute limits$/, 'too_many_attributes'],
]

export function rejectionCode(reason: string): RejectionCode {
  return TEXTS.find(([text]) => text.test(reason))?.[1] ?? 'other'
}
