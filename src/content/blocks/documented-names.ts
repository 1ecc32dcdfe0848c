/**
 * Renames accepted spellings of a block's content fields to the documented ones: a schema's `x-aliases`, and snake_case. Pure; does not
 * modify its input.
 * Throws AppError validation_error for an unknown field, and for a field given twice.
 */
import type { TSchema } from 'typebox'
import { AppError } from '../../core/errors.js'

/** Submitted names by the documented path of their field. */
export type SubmittedNames = Map<string, string>

interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>
  readonly items?: Shape
  readonly additionalProperties?: boolean
  readonly 'x-aliases'?: readonly string[]
}

/** @param place documented path of the value */
export function withDocumentedNames(
  value: unknown,
  schema: TSchema,
  place: readonly string[],
  written: SubmittedNames,
): unknown {
  return rename(value, schema, place, written)
}

function rename(value: unknown, shape: Shape, place: readonly string[], written: SubmittedNames): unknown {
  if (Array.isArray(value))
    return shape.items === undefined
      ? value
      : value.map((item, index) => rename(item, shape.items ?? {}, [...place, String(index)], written))
  const { properties } = shape
  if (typeof value !== 'object' || value === null || properties === undefined) return value
  const names = documentedNames(properties)
  const renamed = new Map<string, unknown>()
  for (const [name, field] of Object.entries(value)) {
    const documented = names.get(name)
    if (documented === undefined) throw unknownField([...place, name], Object.keys(properties))
    if (renamed.has(documented))
      throw fault([...place, name], `repeats ${written.get([...place, documented].join('.')) ?? documented}`)
    if (name !== documented) written.set([...place, documented].join('.'), name)
    renamed.set(documented, rename(field, properties[documented] ?? {}, [...place, documented], written))
  }
  return Object.fromEntries(renamed)
}

/** Converts a documented path to the submitted spelling. */
export function submittedPath(path: string, written: SubmittedNames): string {
  const documented: string[] = []
  const submitted = path.split('.').map(name => {
    documented.push(name)
    return written.get(documented.join('.')) ?? name
  })
  return submitted.join('.')
}

const known = new WeakMap<object, ReadonlyMap<string, string>>()

function documentedNames(properties: Readonly<Record<string, Shape>>): ReadonlyMap<string, string> {
  const found = known.get(properties)
  if (found) return found
  const names = new Map<string, string>()
  for (const [name, { 'x-aliases': aliases = [] }] of Object.entries(properties))
    for (const alias of [...aliases, name])
      for (const one of [toSnakeCase(alias), alias]) names.set(one, name)
  // Documented names win over aliases.
  for (const name of Object.keys(properties)) names.set(name, name)
  known.set(properties, names)
  return names
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

function unknownField(place: readonly string[], names: readonly string[]): AppError {
  return fault(place, `is not a known field; known fields: ${names.join(', ')}`)
}

function fault(place: readonly string[], problem: string): AppError {
  const path = place.join('.')
  return new AppError('validation_error', `${path} ${problem}`, { path })
}
