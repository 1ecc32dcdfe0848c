/**
 * The values of a contact that conditions compare: folded names, and of each attribute its folded text, the number or moment it parses as, and
 * the items of an array. Pure.
 *
 * Computed whenever a contact is written and stored as columns of `contacts` and JSON in `contact_attributes`, so that a rule means the
 * same on both databases. Text that parses as a number also compares as one, since imports contain only text. A nested value is an
 * attribute named by its path (`address.city`); a path through an array of objects collects an array. `null`, `[]` and `{}` are not stored.
 */
import { readMoment } from '../../core/moments.js'
import { fold } from '../../core/fold.js'
import type { Attributes, ContactFields } from './contact.js'

/** Allows surrounding spaces, a sign, leading and trailing zeros and an exponent: `19.90`, `007`, `1e3`. */
const NUMBER = /^\s*[-+]?(\d+(?:\.\d*)?|\.\d+)(e[-+]?\d{1,3})?\s*$/i

/** Longer text is never parsed as a number. */
const MAX_NUMBER_LENGTH = 64

/** Maximum length of a rule's field; longer paths are unreachable. */
const MAX_PATH = 120
/** Control characters and lone surrogates, which PostgreSQL cannot store. */
const UNNAMEABLE = /[\p{Cc}\p{Cs}]/u
/** Nested attributes of one contact that rules can reach. */
export const MAX_NESTED = 1_000

/** Index of each comparable value in the array stored for an attribute. */
export const COMPARED = { text: 0, number: 1, moment: 2, items: 3, itemNumbers: 4 } as const

type ComparedValue = string | number | null | readonly (string | number)[]

/** The array stored for an attribute, in the order of `COMPARED`, without trailing nulls. The text of arrays and objects is null. */
function comparedValues(value: unknown): readonly ComparedValue[] {
  const text = textOf(value) ?? null
  if (typeof value === 'string') {
    const moment = momentOf(value)
    const number = numberOf(value)
    return moment === undefined
      ? number === undefined
        ? [text]
        : [text, number]
      : [text, number ?? null, moment]
  }
  if (typeof value === 'number') return [text, value]
  const items = Array.isArray(value) ? value.flatMap(item => textOf(item) ?? []) : []
  if (items.length === 0) return [text]
  const numbers = items.flatMap(item => numberOf(item) ?? [])
  return numbers.length === 0 ? [text, null, null, items] : [text, null, null, items, numbers]
}

/** JSON by `attributeKey`: top level first, then nested attributes. @returns null if there are none */
function comparedText(attributes: Attributes): string | null {
  const compared: [string, readonly ComparedValue[]][] = []
  let hasNested = false
  for (const [name, value] of Object.entries(attributes)) {
    if (isNothing(value)) continue
    hasNested ||= typeof value === 'object'
    compared.push([attributeKey(name), comparedValues(value)])
  }
  if (hasNested)
    for (const [path, value] of nestedValues(attributes))
      compared.push([attributeKey(path), comparedValues(value)])
  return compared.length === 0 ? null : JSON.stringify(Object.fromEntries(compared))
}

/** Letters, digits and underscores only, so that neither database reads part of a name as a path. */
export function attributeKey(name: string): string {
  return name.replace(/[^A-Za-z0-9_]/gu, character => `~${character.codePointAt(0)?.toString(16) ?? ''}~`)
}

/** The derived columns of a contact. Plain values, so that they can be sent between threads. */
export interface StoredForm {
  readonly firstFolded: string | null
  readonly lastFolded: string | null
  /** Folded address and names. */
  readonly searchText: string
  /** JSON. */
  readonly attributesText: string
  /** JSON; null without attributes. */
  readonly comparedText: string | null
}

export function storedForm({
  email,
  firstName,
  lastName,
  attributes,
}: Pick<ContactFields, 'email' | 'firstName' | 'lastName' | 'attributes'>): StoredForm {
  const [first, last] = [firstName && fold(firstName), lastName && fold(lastName)]
  return {
    firstFolded: first,
    lastFolded: last,
    searchText: `${fold(email)}\n${first ?? ''}\n${last ?? ''}`,
    attributesText: JSON.stringify(attributes),
    comparedText: comparedText(attributes),
  }
}

/** A null value removes its attribute. */
export function mergeAttributes(before: Attributes, patch: Attributes): Attributes {
  const merged = { ...before, ...patch }
  if (!Object.values(merged).includes(null)) return merged
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null))
}

/** Breadth first; if two paths have the same spelling, the shallower one wins. */
function nestedValues(attributes: Attributes): Map<string, unknown> {
  const found = new Map<string, unknown>()
  let level = Object.entries(attributes)
  while (level.length > 0 && found.size < MAX_NESTED) {
    const next: [string, unknown][] = []
    for (const [path, value] of level)
      for (const [key, inner] of innerValues(value)) {
        const inside = `${path}.${key}`
        if (inside.length > MAX_PATH || UNNAMEABLE.test(key)) continue
        if (isNothing(inner) || next.length >= MAX_NESTED) continue
        next.push([inside, inner])
        if (!Object.hasOwn(attributes, inside) && !found.has(inside) && found.size < MAX_NESTED)
          found.set(inside, inner)
      }
    level = next
  }
  return found
}

/** Members of an object; for an array of objects, the collected values of each key. */
function innerValues(value: unknown): [string, unknown][] {
  if (isObject(value)) return Object.entries(value)
  if (!Array.isArray(value)) return []
  const collected = new Map<string, unknown[]>()
  for (const item of value)
    if (isObject(item))
      for (const [key, inner] of Object.entries(item)) {
        const all = collected.get(key) ?? []
        collected.set(key, all)
        if (Array.isArray(inner)) all.push(...(inner as unknown[]))
        else all.push(inner)
      }
  return [...collected]
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Values that are not stored. Empty text is, since it can be compared, although `is_set` is false for it. */
function isNothing(value: unknown): boolean {
  return (
    value === null ||
    (typeof value === 'object' && (Array.isArray(value) ? value : Object.keys(value)).length === 0)
  )
}

/** The value at a rule's path, consistent with `comparedText`. */
export function attributeAt(attributes: Attributes, path: string): unknown {
  if (Object.hasOwn(attributes, path)) return attributes[path]
  return path.includes('.') ? nestedValues(attributes).get(path) : undefined
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return storable(fold(value))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** Parses numeric text, the same for rules and attributes. */
export function numberOf(text: string): number | undefined {
  if (text.length > MAX_NUMBER_LENGTH || !NUMBER.test(text)) return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number : undefined
}

/** Requires a date's punctuation; otherwise an eight-digit number would parse as one. */
export function momentOf(value: string): number | undefined {
  return /^\d{4}-\d\d-\d\d/.test(value) ? readMoment(value) : undefined
}

/** Removes NULs and replaces lone surrogates, which PostgreSQL cannot store. */
function storable(text: string): string {
  if (PLAIN.test(text)) return text
  return Buffer.from(text.replaceAll('\0', ''), 'utf8').toString('utf8')
}

// eslint-disable-next-line no-control-regex -- all of ASCII but NUL
const PLAIN = /^[\x01-\x7f]*$/
