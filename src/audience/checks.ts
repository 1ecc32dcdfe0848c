/**
 * Checks of what requests say that no schema can express, for all of the audience.
 *
 * Called by routes and services. Pure. Fails: AppError validation_error, naming the field; limit_reached.
 */
import { AppError } from '../core/errors.js'
import { normalizedAddress, readAddress } from '../mail/address.js'
import type { Attributes } from './contacts/contact.js'
import { mergeAttributes } from './contacts/traits.js'

/** @returns the address in the form that it is stored and compared in */
export function checkEmail(text: string): string {
  const read = readAddress(text.trim())
  if ('fault' in read) throw refusal('email', `the address ${read.fault}`)
  return normalizedAddress(text)
}

/** @returns without white space around it; undefined stays, and what is then empty is null */
export function checkText(path: string, text: string | null | undefined): string | null | undefined {
  if (text === undefined || text === null) return text
  if (CONTROL.test(text)) throw refusal(path, `${path} has control characters in it`)
  return text.trim() || null
}

/** Of a thing that has to have one. */
export function checkName(text: string): string {
  const name = checkText('name', text)
  if (typeof name !== 'string') throw refusal('name', 'name must not be empty')
  return name
}

/** Characters of the name of a campaign or an automation. */
const MOST_NAME = 200

/** `Copy of January news`, cut where it would be too long. */
export function copyName(prefix: string, name: string): string {
  return Array.from(`${prefix} ${name}`).slice(0, MOST_NAME).join('').trimEnd()
}

/** Line ends and tabs are text; NUL and the like PostgreSQL would not keep, and no screen would show. */
// eslint-disable-next-line no-control-regex -- this is what it is for
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

const MOST_ATTRIBUTES = 200
const MOST_ATTRIBUTE_NAME = 100
const MOST_OCTETS = 32 * 1_024
const MOST_NESTING = 8

export function checkAttributes(attributes: Attributes): void {
  const names = Object.keys(attributes)
  if (names.length > MOST_ATTRIBUTES)
    throw refusal('attributes', `attributes must be at most ${MOST_ATTRIBUTES}`)
  for (const name of names)
    if (name === '' || name.length > MOST_ATTRIBUTE_NAME || CONTROL.test(name))
      throw refusal(
        'attributes',
        `names of attributes have 1 to ${MOST_ATTRIBUTE_NAME} characters, none of them a control character`,
      )
  // Looked at first: what is nested too deep cannot be written as JSON without end of the stack.
  if (!isNestedWithin(attributes, MOST_NESTING))
    throw refusal('attributes', `attributes are nested deeper than ${MOST_NESTING} levels`)
  if (Buffer.byteLength(JSON.stringify(attributes)) > MOST_OCTETS)
    throw refusal('attributes', 'attributes are larger than 32 KB')
}

/**
 * Attributes with what is said of them anew, where that stays within the bounds of a contact. What only takes away always does.
 *
 * @throws AppError validation_error
 */
export function mergeWithinBounds(before: Attributes, patch: Attributes): Attributes {
  const merged = mergeAttributes(before, patch)
  if (Object.values(patch).some(value => value !== null)) checkAttributes(merged)
  return merged
}

/** Whether what is said of attributes anew can be taken. */
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

/** @param number how many of them a workspace has already @throws AppError limit_reached */
export function refuseMoreThan(most: number, number: number, things: string): void {
  if (number >= most)
    throw new AppError(
      'limit_reached',
      `a workspace has at most ${most} ${things}; delete one that is not used`,
    )
}

export function refusal(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}
