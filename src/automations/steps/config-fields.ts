/**
 * Reads the `config` of a step or trigger field by field. Names may be in camelCase, as in responses, or in snake_case.
 *
 * A field that is absent or null gets its default. Pure. Throws AppError validation_error with the path of the field.
 */
import { refusal } from '../../audience/checks.js'
import Type, { type TSchema } from 'typebox'
import type { Config } from '../flows/automation.js'

export interface Field<T> {
  readonly default: T
  /** Completes "must be ..." in errors. */
  readonly expected: string
  /** For the API description. Null is always accepted and means the default. */
  readonly schema: TSchema
  /** @returns undefined if the value is invalid */
  read(value: unknown, path: string): T | undefined
}

export type Fields = Readonly<Record<string, Field<unknown>>>

export type ConfigOf<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never
}

// eslint-disable-next-line no-control-regex -- matches control characters on purpose
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

function textWithin(value: unknown, maxLength: number): string | undefined {
  return typeof value !== 'string' || value.length > maxLength || CONTROL.test(value) ? undefined : value
}

export function text(maxLength: number): Field<string> {
  return {
    default: '',
    expected: `a string of at most ${maxLength} characters`,
    schema: Type.String({ maxLength }),
    read: value => textWithin(value, maxLength),
  }
}

/** The id of something, in lower case. */
export function reference(): Field<string | null> {
  return {
    default: null,
    expected: 'an id or null',
    schema: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
    read: value => textWithin(value, 64)?.trim().toLowerCase() || undefined,
  }
}

/** @param above exclusive lower bound */
export function number(fallback: number, above: number, max: number): Field<number> {
  return {
    default: fallback,
    expected: `a number above ${above} and at most ${max}`,
    schema: Type.Number({ exclusiveMinimum: above, maximum: max }),
    read: value => (typeof value === 'number' && value > above && value <= max ? value : undefined),
  }
}

export function choice<T extends string>(fallback: NoInfer<T>, values: readonly T[]): Field<T> {
  return {
    default: fallback,
    expected: `one of ${values.join(', ')}`,
    schema: Type.Enum([...values]),
    read: value => values.find(one => one === value),
  }
}

export function bool(fallback: boolean): Field<boolean> {
  return {
    default: fallback,
    expected: 'true or false',
    schema: Type.Boolean(),
    read: value => (typeof value === 'boolean' ? value : undefined),
  }
}

/** A field without a default. */
export function optional<T>({ expected, schema, read }: Omit<Field<T>, 'default'>): Field<T | undefined> {
  return { default: undefined, expected, schema, read }
}

export function checked<T>(field: Field<T>, check: (value: T, path: string) => void): Field<T> {
  return {
    ...field,
    read(value, path) {
      const found = field.read(value, path)
      if (found !== undefined) check(found, path)
      return found
    },
  }
}

/**
 * @param input fields as the client sent them
 * @param path of the config in the request, e.g. `steps.2.config`
 * @param before the stored config if it is changed; absent fields keep its values instead of the defaults
 * @throws AppError validation_error
 */
export function readConfig(
  fields: Fields,
  input: Readonly<Record<string, unknown>>,
  path: string,
  before?: Config,
): Config {
  const config: Record<string, unknown> = {}
  for (const [name, { default: fallback }] of Object.entries(fields)) {
    const value = before && Object.hasOwn(before, name) ? before[name] : fallback
    if (value !== undefined) config[name] = value
  }
  for (const [key, value] of Object.entries(input)) {
    const name = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    const fieldPath = `${path}.${key}`
    if (!field) throw refusal(fieldPath, `${key} is not a known field; known fields are ${namesOf(fields)}`)
    const found = value === null ? field.default : field.read(value, fieldPath)
    if (value !== null && found === undefined) throw refusal(fieldPath, `${key} must be ${field.expected}`)
    if (found === undefined) Reflect.deleteProperty(config, name)
    else config[name] = found
  }
  return config
}

export function configSchema(title: string, fields: Fields): TSchema {
  const shown = Object.entries(fields).map(([name, { default: value, schema }]) => [
    name,
    Type.Optional(value === undefined ? schema : { ...schema, default: value }),
  ])
  return Type.Object(Object.fromEntries(shown) as Record<string, TSchema>, { title })
}

function namesOf(fields: Fields): string {
  const names = Object.keys(fields)
  return names.length === 0 ? 'none' : names.join(', ')
}
