/**
 * Types of attributes: which type a value has, and values converted to a declared type.
 *
 * Used by everything that writes contacts and by the warnings about rules. Pure. Never refuses a value: one that is not unambiguously of
 * the declared type is kept as given.
 */
import type { Attributes } from '../contacts/contact.js'
import { momentOf, numberOf } from '../contacts/compared-attributes.js'

export const ATTRIBUTE_TYPES = ['text', 'number', 'date', 'boolean', 'list'] as const

export type AttributeType = (typeof ATTRIBUTE_TYPES)[number]

/** By the name of the attribute. */
export type DeclaredTypes = ReadonlyMap<string, AttributeType>

/** @returns `attributes` itself if nothing is converted; nested attributes are never */
export function convertDeclared(declared: DeclaredTypes, attributes: Attributes): Attributes {
  let converted: Record<string, unknown> | undefined
  for (const [name, value] of Object.entries(attributes)) {
    const type = declared.get(name)
    const after = type === undefined ? value : convertValue(type, value)
    if (after === value) continue
    converted ??= { ...attributes }
    converted[name] = after
  }
  return converted ?? attributes
}

/** Longer numbers lose digits as a number. */
const EXACT_DIGITS = 15

function convertValue(type: AttributeType, value: unknown): unknown {
  if (type === 'text') return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  if (typeof value !== 'string') return value
  if (type === 'number') {
    const digits = value.replace(/\D/g, '')
    return digits.length > EXACT_DIGITS ? value : (numberOf(value) ?? value)
  }
  if (type === 'boolean') {
    const word = value.trim().toLowerCase()
    return word === 'true' || word === 'false' ? word === 'true' : value
  }
  return type === 'date' ? dateIn(value) : value
}

/** A date is kept as text, in the form rules compare. */
function dateIn(value: string): string {
  const trimmed = value.trim()
  return momentOf(trimmed) === undefined ? value : trimmed
}

/** The type that rules compare a value as; undefined for what they compare as nothing: empty text and objects. */
export function typeOfValue(value: unknown): AttributeType | undefined {
  if (Array.isArray(value)) return 'list'
  if (typeof value === 'number') return 'number'
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value !== 'string' || value.trim() === '') return undefined
  if (momentOf(value) !== undefined) return 'date'
  return numberOf(value) === undefined ? (/^(?:true|false)$/i.test(value) ? 'boolean' : 'text') : 'number'
}
