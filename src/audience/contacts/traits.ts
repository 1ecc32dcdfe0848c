/**
 * What rules compare of a contact's names and attributes, and searches look into: folded text, and of attributes also a number or
 * moment where it is one.
 *
 * Stored beside them (`contact-write-store.ts`, `places-store.ts`), so that a rule means the same on both databases and reads no more than it needs.
 * Called by the contact store, by the thread that reads imports, and by whoever compiles rules. Pure. A value that is neither text, number nor truth value is there, but compares with
 * nothing; a text that is written as a number (imports know nothing else) is one, and one that is written as a date is a moment.
 */
import { readMoment } from '../../core/read-moment.js'
import { fold } from '../../core/fold.js'
import type { Attributes, ContactFields } from './contact.js'

export type Traits = Readonly<Record<string, string | number | null>>

/** As a number is written by everybody: no leading zeros, no exponent, few digits. */
const NUMBER = /^-?(0|[1-9]\d{0,14})(\.\d{0,14}[1-9])?$/

/** One attribute, as rules compare it. */
export interface Trait {
  /** Folded; null where it is neither text, number nor truth value. */
  readonly text: string | null
  readonly number: number | null
  /** Ms since epoch UTC. */
  readonly moment: number | null
}

export function traitOf(value: unknown): Trait {
  return { text: textOf(value) ?? null, number: numberOf(value) ?? null, moment: momentOf(value) ?? null }
}

export function traitsOf(attributes: readonly NamedTrait[]): Traits {
  return Object.fromEntries(
    attributes.flatMap(([name, { text, number, moment }]) => {
      const traits: [string, string | number | null][] = [[textTrait(name), text]]
      if (number !== null) traits.push([numberTrait(name), number])
      if (moment !== null) traits.push([momentTrait(name), moment])
      return traits
    }),
  )
}

/** An attribute's name as it is written, and what rules compare of it. */
export type NamedTrait = readonly [name: string, trait: Trait]

/** What is stored of a contact's fields beside them. Values only, so that one thread may make it for another. */
export interface StoredForm {
  readonly firstFolded: string | null
  readonly lastFolded: string | null
  /** Address and names, folded. */
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
    traits: Object.entries(attributes).map(([name, value]) => [name, traitOf(value)]),
  }
}

/** A null value takes its attribute away. */
export function mergeAttributes(before: Attributes, patch: Attributes): Attributes {
  const merged = { ...before, ...patch }
  if (!Object.values(merged).includes(null)) return merged
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null))
}

/** Under which the text of an attribute stands. Letters and digits only, so that no database takes it for a path. */
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

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return storable(fold(value))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && NUMBER.test(value) ? Number(value) : undefined
}

/** Begins as a date does; else a number of eight digits would be one. */
function momentOf(value: unknown): number | undefined {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) ? readMoment(value) : undefined
}

/** Without what PostgreSQL keeps in no text: NUL and halves of characters. */
function storable(text: string): string {
  if (PLAIN.test(text)) return text
  return Buffer.from(text.replaceAll('\0', ''), 'utf8').toString('utf8')
}

// eslint-disable-next-line no-control-regex -- all of ASCII but NUL
const PLAIN = /^[\x01-\x7f]*$/
