/**
 * The comparable form of a contact's names and attributes: folded text, the number or moment it parses as, the items of an array.
 *
 * Stored beside the contact (`contact-write-store.ts`, `places-store.ts`), so that a rule means the same on both databases and reads no more
 * than it needs. Used by the contact store, the import reader and the compiler of rules. Pure.
 *
 * Text that parses as a number also compares as one, since imports contain only text. A nested value is an attribute named by its path
 * (`address.city`); a path through an array of objects collects an array. `null`, `[]` and `{}` are stored as nothing.
 */
import { readMoment } from '../../core/moments.js'
import { fold } from '../../core/fold.js'
import type { Attributes, ContactFields } from './contact.js'

export type Traits = Readonly<Record<string, string | number | null | readonly (string | number)[]>>

/** Surrounding spaces, a sign, leading and trailing zeros and an exponent are allowed: `19.90`, `007`, `1e3`. */
const NUMBER = /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?\s*$/i

/** Longer text is never parsed as a number. */
const MAX_NUMBER = 64

/** Maximum length of a rule's field; longer paths are unreachable. */
const MAX_PATH = 120
/** Control characters and lone surrogates, which PostgreSQL cannot store. */
const UNNAMEABLE = /[\p{Cc}\p{Cs}]/u
/** Nested attributes of one contact that rules can reach. */
export const MOST_NESTED = 1_000

/** One attribute, as rules compare it. */
export interface Trait {
  /** Folded; null for arrays and objects. */
  readonly text: string | null
  readonly number: number | null
  /** Ms since epoch UTC. */
  readonly moment: number | null
  /** Of an array: the text of each item that is a text, number or boolean. */
  readonly items: readonly string[] | null
}

export function traitOf(value: unknown): Trait {
  const items = Array.isArray(value) ? value.flatMap(item => textOf(item) ?? []) : null
  const text = textOf(value) ?? null
  const number = typeof value === 'number' ? value : typeof value === 'string' ? numberOf(value) : undefined
  return { text, number: number ?? null, moment: momentOf(value) ?? null, items }
}

/** Traits of all attributes: top level first, then nested ones by path. */
export function namedTraits(attributes: Attributes): NamedTrait[] {
  const named: NamedTrait[] = []
  let hasNested = false
  for (const [name, value] of Object.entries(attributes)) {
    if (isNothing(value)) continue
    hasNested ||= typeof value === 'object'
    named.push([name, traitOf(value)])
  }
  if (hasNested) for (const [path, value] of nestedValues(attributes)) named.push([path, traitOf(value)])
  return named
}

/** Breadth first; if two paths have the same spelling, the shallower one wins. */
function nestedValues(attributes: Attributes): Map<string, unknown> {
  const found = new Map<string, unknown>()
  let level = Object.entries(attributes)
  while (level.length > 0 && found.size < MOST_NESTED) {
    const next: [string, unknown][] = []
    for (const [path, value] of level)
      for (const [key, inner] of innerValues(value)) {
        const place = `${path}.${key}`
        if (place.length > MAX_PATH || UNNAMEABLE.test(key)) continue
        if (isNothing(inner) || next.length >= MOST_NESTED) continue
        next.push([place, inner])
        if (!Object.hasOwn(attributes, place) && !found.has(place) && found.size < MOST_NESTED)
          found.set(place, inner)
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

/** The value at a rule's path, consistent with `namedTraits`. */
export function attributeAt(attributes: Attributes, path: string): unknown {
  if (Object.hasOwn(attributes, path)) return attributes[path]
  return path.includes('.') ? nestedValues(attributes).get(path) : undefined
}

/** In the stored JSON form, without absent values. */
export function traitsOf(attributes: readonly NamedTrait[]): Traits {
  return Object.fromEntries(
    attributes.flatMap(([name, { text, number, moment, items }]) => {
      const traits: [string, Traits[string]][] = [[textTrait(name), text]]
      if (number !== null) traits.push([numberTrait(name), number])
      if (moment !== null) traits.push([momentTrait(name), moment])
      if (items !== null && items.length > 0) {
        traits.push([itemsTrait(name), items])
        const numbers = items.flatMap(item => numberOf(item) ?? [])
        if (numbers.length > 0) traits.push([itemNumbersTrait(name), numbers])
      }
      return traits
    }),
  )
}

/** An attribute's name in its original spelling, and its trait. */
export type NamedTrait = readonly [name: string, trait: Trait]

/** The derived columns of a contact. Plain values, so that they can be sent between threads. */
export interface StoredForm {
  readonly firstFolded: string | null
  readonly lastFolded: string | null
  /** Folded address and names. */
  readonly searchText: string
  /** JSON. */
  readonly attributesText: string
  readonly traits: readonly NamedTrait[]
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
    traits: namedTraits(attributes),
  }
}

/** A null value removes its attribute. */
export function mergeAttributes(before: Attributes, patch: Attributes): Attributes {
  const merged = { ...before, ...patch }
  if (!Object.values(merged).includes(null)) return merged
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null))
}

/** JSON key of an attribute's text. Letters and digits only, so that no database reads it as a path. */
export function textTrait(name: string): string {
  return name.replace(/[^A-Za-z0-9_]/gu, character => `~${character.codePointAt(0)?.toString(16) ?? ''}~`)
}

export function numberTrait(name: string): string {
  return `${textTrait(name)}~n`
}

/** Ms since epoch UTC. */
export function momentTrait(name: string): string {
  return `${textTrait(name)}~d`
}

/** Texts of the items of an array. */
export function itemsTrait(name: string): string {
  return `${textTrait(name)}~l`
}

/** Items that are numbers. */
export function itemNumbersTrait(name: string): string {
  return `${textTrait(name)}~m`
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return storable(fold(value))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** Parses numeric text, the same for rules and attributes. */
export function numberOf(text: string): number | undefined {
  if (text.length > MAX_NUMBER || !NUMBER.test(text)) return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number : undefined
}

/** Requires a date's punctuation; otherwise an eight-digit number would parse as one. */
function momentOf(value: unknown): number | undefined {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) ? readMoment(value) : undefined
}

/** Removes NULs and replaces lone surrogates, which PostgreSQL cannot store. */
function storable(text: string): string {
  if (PLAIN.test(text)) return text
  return Buffer.from(text.replaceAll('\0', ''), 'utf8').toString('utf8')
}

// eslint-disable-next-line no-control-regex -- all of ASCII but NUL
const PLAIN = /^[\x01-\x7f]*$/
