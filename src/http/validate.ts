/**
 * Validates external input against TypeBox schemas and names the first invalid field.
 *
 * Schemas are compiled on first use: compiling all of them takes a fifth of startup, and most routes are never called. Query strings
 * are text, so numbers and booleans are converted first; JSON is not coerced: "5" is not 5.
 */
import type { Static, TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { AppError, type BrokenRule } from '../core/errors.js'
import { given } from '../core/given.js'
import { absentWhereNull } from './absent-fields.js'

export type Validate<S extends TSchema> = (value: unknown) => Static<S>

/** The parts of a TypeBox error used here. */
interface Finding {
  readonly keyword: string
  readonly instancePath: string
  readonly params: object
  readonly message: string
}

/**
 * @param whole name for errors that concern no single field
 * @returns a function that returns the value typed, or throws AppError validation_error with the field's path
 */
export function validator<S extends TSchema>(schema: S, whole: string): Validate<S> {
  const check = placedValidator(schema, whole)
  return value => check(value, [])
}

/** Validates a value at a place inside a larger one; paths in errors start with that place. */
export function placedValidator<S extends TSchema>(
  schema: S,
  whole: string,
): (value: unknown, place: readonly string[]) => Static<S> {
  let made: ReturnType<typeof compile<S>> | undefined
  return (value, place) => {
    const compiled = (made ??= compile(schema))
    if (compiled.Check(value)) return value
    const findings = compiled.Errors(cutShort(value))
    throw firstFault(findings.length > 0 ? findings : compiled.Errors(value), whole, place)
  }
}

/** Validates a JSON body, in which null in an optional field means that it is absent. */
export function bodyValidator(schema: TSchema): (value: unknown) => unknown {
  const [withoutNulls, validate] = [absentWhereNull(schema), validator(schema, 'body')]
  return value => validate(withoutNulls(value))
}

function compile<S extends TSchema>(schema: S) {
  return Compile(schema)
}

/** Longer than any list may be. */
const MAX_ENTRIES = 5_100
/** Each unknown field is an error. */
const MAX_FIELDS = 500

/** Truncates long lists and objects: the first errors are enough, and collecting all of them is slow. */
function cutShort(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, MAX_ENTRIES).map(cutShort)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).slice(0, MAX_FIELDS)
  return Object.fromEntries(fields.map(([name, field]) => [name, cutShort(field)]))
}

/** Validates query strings and path parameters. A repeated name is refused as ambiguous. */
export function textValidator<S extends TObject>(schema: S): Validate<S> {
  const check = validator(schema, 'query')
  const kinds = Object.entries(schema.properties as Record<string, { type?: string }>)
  return value => {
    const converted: Record<string, unknown> = { ...(value as Record<string, unknown>) }
    for (const [name, { type }] of kinds) {
      const text = converted[name]
      if (typeof text !== 'string') continue
      // No stored text contains NUL, and PostgreSQL rejects it even in comparisons.
      if (text.includes('\0'))
        throw new AppError('validation_error', `${name} contains a NUL character`, { path: name })
      if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(\.\d+)?$/.test(text))
        converted[name] = Number(text)
      if (type === 'boolean' && (text === 'true' || text === 'false')) converted[name] = text === 'true'
    }
    return check(converted)
  }
}

/** The deepest error is the most specific: for `to: ["a", 3]` a union reports `to` (not a string) and `to.1` (not a string). */
function firstFault(findings: readonly Finding[], whole: string, place: readonly string[]): AppError {
  const depth = (finding: Finding) => finding.instancePath.split('/').length
  const telling = findings.filter(finding => finding.keyword !== 'anyOf' && finding.keyword !== 'boolean')
  const first = telling.reduce<Finding | undefined>(
    (best, finding) => (!best || depth(finding) > depth(best) ? finding : best),
    undefined,
  )
  // If the type is right and only a bound is violated, as in `to: []`, report the bound.
  const bound = telling.find(f => f.instancePath === first?.instancePath && f.keyword !== 'type')
  const deepest = bound ?? first
  if (!deepest) return new AppError('validation_error', `${whole} is invalid`, { path: whole })
  const field = deepest.instancePath.split('/').slice(1).map(unescapePointer)
  const alternatives = telling.filter(f => f.keyword === 'type' && f.instancePath === deepest.instancePath)
  const { name, problem } = describe(deepest, alternatives)
  const path = [...place, ...field, ...name].join('.') || whole
  return new AppError('validation_error', `${path} ${problem}`, { path, ...given({ rule: ruleOf(deepest) }) })
}

const RULES: Readonly<Record<string, BrokenRule['name']>> = {
  required: 'required',
  additionalProperties: 'unknown_field',
  type: 'type',
  enum: 'enum',
  const: 'enum',
  maxLength: 'max_length',
  minLength: 'min_length',
  maxItems: 'max_items',
  minItems: 'min_items',
  maximum: 'maximum',
  minimum: 'minimum',
  pattern: 'pattern',
}

function ruleOf({ keyword, params }: Finding): BrokenRule | undefined {
  const name = RULES[keyword]
  const { limit } = params as { limit?: unknown }
  return name && { name, ...(typeof limit === 'number' ? { limit } : {}) }
}

/** @returns the rest of the path (for a missing or unknown field) and the problem in words */
function describe(finding: Finding, types: readonly Finding[]): { name: string[]; problem: string } {
  const { keyword } = finding
  const params = finding.params as Record<string, unknown>
  const firstOf = (key: string): string[] => (Array.isArray(params[key]) ? [String(params[key][0])] : [])
  switch (keyword) {
    case 'required':
      return { name: firstOf('requiredProperties'), problem: 'is required' }
    case 'additionalProperties':
      return { name: firstOf('additionalProperties'), problem: 'is not a known field' }
    case 'type':
      return { name: [], problem: `must be ${types.map(type => typeInWords(type)).join(' or ')}` }
    case 'enum':
      return {
        name: [],
        problem: `must be one of ${(params['allowedValues'] as readonly unknown[]).join(', ')}`,
      }
    case 'maxLength':
      return { name: [], problem: `must have at most ${String(params['limit'])} characters` }
    case 'minLength':
      return { name: [], problem: Number(params['limit']) === 1 ? 'must not be empty' : finding.message }
    case 'maxItems':
      return { name: [], problem: `must have at most ${String(params['limit'])} entries` }
    case 'minItems':
      return {
        name: [],
        problem:
          Number(params['limit']) === 1
            ? 'must not be empty'
            : `must have at least ${String(params['limit'])} entries`,
      }
    default:
      return { name: [], problem: finding.message }
  }
}

function typeInWords(finding: Finding): string {
  const { type } = finding.params as { type?: unknown }
  const words = String(type)
  if (words === 'null') return 'null'
  return /^[aeio]/.test(words) ? `an ${words}` : `a ${words}`
}

/** RFC 6901 §4. */
function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
