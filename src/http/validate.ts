/**
 * Checks what came from outside against a TypeBox schema and names the first field at fault.
 *
 * A schema is compiled once, when the first value is held against it: all routes together are a fifth of a start, and most are not
 * asked for in the life of a process. Query strings are text, so numbers and truth values in them are converted first; JSON bodies are taken as they are: "5" is not 5.
 */
import type { Static, TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { AppError } from '../core/errors.js'

export type Validate<S extends TSchema> = (value: unknown) => Static<S>

/** The parts of a validator's finding that are read here. */
interface Finding {
  readonly keyword: string
  readonly instancePath: string
  readonly params: object
  readonly message: string
}

/** @returns a function that hands the value back typed, or throws AppError validation_error with the field's path */
export function validator<S extends TSchema>(schema: S, whole: string): Validate<S> {
  const check = placedValidator(schema, whole)
  return value => check(value, [])
}

/** The same for a value that stands somewhere in a whole, which the path then begins with. */
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

function compile<S extends TSchema>(schema: S) {
  return Compile(schema)
}

/** More than any list may have. */
const MOST_LOOKED_AT = 5_100

/** The value without what comes late in long lists and objects: a fault is found early, and looking for all of them takes long. */
function cutShort(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, MOST_LOOKED_AT).map(cutShort)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).slice(0, MOST_LOOKED_AT)
  return Object.fromEntries(fields.map(([name, field]) => [name, cutShort(field)]))
}

/** The same for query strings and path parameters. A name given twice is refused: which one would count? */
export function textValidator<S extends TObject>(schema: S): Validate<S> {
  const check = validator(schema, 'query')
  const kinds = Object.entries(schema.properties as Record<string, { type?: string }>)
  return value => {
    const converted: Record<string, unknown> = { ...(value as Record<string, unknown>) }
    for (const [name, { type }] of kinds) {
      const text = converted[name]
      if (typeof text !== 'string') continue
      // Nothing is called so, and PostgreSQL takes no text that holds one, not even to compare with.
      if (text.includes('\0'))
        throw new AppError('validation_error', `${name} contains a NUL character`, { path: name })
      if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(\.\d+)?$/.test(text))
        converted[name] = Number(text)
      if (type === 'boolean' && (text === 'true' || text === 'false')) converted[name] = text === 'true'
    }
    return check(converted)
  }
}

/**
 * Of several findings the deepest is the most telling: for `to: ["a", 3]` a union reports both that `to` is no string
 * and that `to.1` is none.
 */
function firstFault(findings: readonly Finding[], whole: string, place: readonly string[]): AppError {
  const depth = (finding: Finding) => finding.instancePath.split('/').length
  const telling = findings.filter(finding => finding.keyword !== 'anyOf' && finding.keyword !== 'boolean')
  const first = telling.reduce<Finding | undefined>(
    (best, finding) => (!best || depth(finding) > depth(best) ? finding : best),
    undefined,
  )
  // Where one alternative has the right type and only breaks a bound, the bound is what to tell of: `to: []`.
  const bound = telling.find(f => f.instancePath === first?.instancePath && f.keyword !== 'type')
  const deepest = bound ?? first
  if (!deepest) return new AppError('validation_error', `${whole} is invalid`, { path: whole })
  const field = deepest.instancePath.split('/').slice(1).map(unescapePointer)
  const alternatives = telling.filter(f => f.keyword === 'type' && f.instancePath === deepest.instancePath)
  const { name, problem } = describe(deepest, alternatives)
  const path = [...place, ...field, ...name].join('.') || whole
  return new AppError('validation_error', `${path} ${problem}`, { path })
}

/** @returns the rest of the path (for a missing or unknown field) and what is wrong in words */
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
