/**
 * Validation that a schema cannot express, for all audience requests.
 *
 * Called by routes and services. Pure. Fails: AppError validation_error with the field's path; limit_reached.
 */
import { AppError } from '../core/errors.js'
import { normalizedAddress, readAddress } from '../mail/address.js'
import type { Attributes } from './contacts/contact.js'
import { mergeAttributes } from './contacts/compared-attributes.js'

/** @returns the normalized address */
export function checkEmail(text: string): string {
  const read = readAddress(text)
  if ('fault' in read) throw refusal('email', `the address ${read.fault}`)
  return normalizedAddress(text)
}

/** @returns trimmed text; null if that is empty, undefined if not given */
export function checkText(path: string, text: string | null | undefined): string | null | undefined {
  if (text === undefined || text === null) return text
  if (CONTROL.test(text)) throw refusal(path, `${path} must not contain control characters`)
  return text.trim() || null
}

/** Maximum length of a campaign or automation name. */
const MAX_NAME = 200

/** `Copy of January news`, truncated to the maximum length. */
export function copyName(prefix: string, name: string): string {
  return Array.from(`${prefix} ${name}`).slice(0, MAX_NAME).join('').trimEnd()
}

/** Line breaks and tabs are allowed. PostgreSQL cannot store NUL. */
// eslint-disable-next-line no-control-regex -- this is what it is for
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

const MAX_ATTRIBUTES = 200
const MAX_ATTRIBUTE_NAME = 100
const MAX_OCTETS = 32 * 1_024
const MAX_NESTING = 8

export function checkAttributes(attributes: Attributes): void {
  const names = Object.keys(attributes)
  if (names.length > MAX_ATTRIBUTES)
    throw refusal('attributes', `a contact can have at most ${MAX_ATTRIBUTES} attributes`)
  for (const name of names)
    if (name === '' || name.length > MAX_ATTRIBUTE_NAME || CONTROL.test(name))
      throw refusal(
        'attributes',
        `attribute names must have 1 to ${MAX_ATTRIBUTE_NAME} characters and no control characters`,
      )
  // Checked before serializing: JSON.stringify overflows the stack on very deep values.
  if (!isNestedWithin(attributes, MAX_NESTING))
    throw refusal('attributes', `attributes must not be nested deeper than ${MAX_NESTING} levels`)
  if (Buffer.byteLength(JSON.stringify(attributes)) > MAX_OCTETS)
    throw refusal('attributes', 'attributes must not exceed 32 KB as JSON')
}

/**
 * Merges attributes, keeping a contact within its limits. A patch that only removes attributes is always accepted.
 *
 * @throws AppError validation_error
 */
export function mergeWithinBounds(before: Attributes, patch: Attributes): Attributes {
  const merged = mergeAttributes(before, patch)
  if (Object.values(patch).some(value => value !== null)) checkAttributes(merged)
  return merged
}

/** Whether the merged attributes stay within the limits. */
export function isWithinBounds(before: Attributes, patch: Attributes): boolean {
  try {
    mergeWithinBounds(before, patch)
    return true
  } catch {
    return false
  }
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(inner => isNestedWithin(inner, levels - 1))
}

/** @param number current count in the workspace @throws AppError limit_reached */
export function refuseMoreThan(most: number, number: number, things: string): void {
  if (number >= most)
    throw new AppError(
      'limit_reached',
      `a workspace has at most ${most} ${things}; delete one you no longer use`,
    )
}

/** @param what singular, e.g. `list` */
export function notDeleted(what: string): AppError {
  return new AppError('not_found', `no such ${what} was deleted in the last 30 days`)
}

export function refusal(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}
