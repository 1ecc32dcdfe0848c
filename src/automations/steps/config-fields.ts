/**
 * Reads the `config` of a step or trigger field by field: names in camelCase, as answers have them, or in snake_case.
 *
 * Called where requests come in. A field that is left out, or null, has its default. Pure.
 * Fails: AppError validation_error, its path leading to the field.
 */
import { refusal } from '../../audience/checks.js'
import Type, { type TSchema } from 'typebox'
import type { Config } from '../flows/automation.js'

export interface Field<T> {
  /** What it is where nothing is said. */
  readonly usual: T
  /** Completes "it must be ...", for the description of the API. */
  readonly what: string
  /** For the description of the API; null is accepted everywhere and stands for the default. */
  readonly schema: TSchema
  /** @returns undefined where the value is no such thing */
  read(value: unknown, path: string): T | undefined
}

export type Fields = Readonly<Record<string, Field<unknown>>>

export type ConfigOf<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never
}

// eslint-disable-next-line no-control-regex -- this is what it is for
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

function textWithin(value: unknown, most: number): string | undefined {
  return typeof value !== 'string' || value.length > most || CONTROL.test(value) ? undefined : value
}

export function text(most: number): Field<string> {
  const what = `a text of at most ${most} characters`
  return { usual: '', what, schema: Type.String({ maxLength: most }), read: value => textWithin(value, most) }
}

/** An id, or nothing. */
export function reference(): Field<string | null> {
  return {
    usual: null,
    what: 'an id or null',
    schema: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
    read: value => textWithin(value, 64)?.trim().toLowerCase() || undefined,
  }
}

export function number(usual: number, above: number, most: number): Field<number> {
  return {
    usual,
    what: `a number above ${above} and at most ${most}`,
    schema: Type.Number({ exclusiveMinimum: above, maximum: most }),
    read: value => (typeof value === 'number' && value > above && value <= most ? value : undefined),
  }
}

export function choice<T extends string>(usual: NoInfer<T>, values: readonly T[]): Field<T> {
  return {
    usual,
    what: `one of ${values.join(', ')}`,
    schema: Type.Enum([...values]),
    read: value => values.find(one => one === value),
  }
}

export function truth(usual: boolean): Field<boolean> {
  return {
    usual,
    what: 'true or false',
    schema: Type.Boolean(),
    read: value => (typeof value === 'boolean' ? value : undefined),
  }
}

/** Undefined where the request says nothing of it. */
export function optional<T>({ what, schema, read }: Omit<Field<T>, 'usual'>): Field<T | undefined> {
  return { usual: undefined, what, schema, read }
}

/** With a check of its own beside the form. */
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
 * @param said as it came @param before what stays where nothing is said; the defaults where absent
 * @param path of the config in the request, e.g. `steps.2.config`
 * @throws AppError validation_error
 */
export function readConfig(
  fields: Fields,
  said: Readonly<Record<string, unknown>>,
  path: string,
  before?: Config,
): Config {
  const config: Record<string, unknown> = {}
  for (const [name, { usual }] of Object.entries(fields)) {
    const value = before && Object.hasOwn(before, name) ? before[name] : usual
    if (value !== undefined) config[name] = value
  }
  for (const [written, value] of Object.entries(said)) {
    const name = written.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    const place = `${path}.${written}`
    if (!field) throw refusal(place, `${written} is no field of it; there are ${namesOf(fields)}`)
    const found = value === null ? field.usual : field.read(value, place)
    if (value !== null && found === undefined) throw refusal(place, `${written} must be ${field.what}`)
    if (found === undefined) Reflect.deleteProperty(config, name)
    else config[name] = found
  }
  return config
}

/** The fields as a named schema of the API's description. */
export function configSchema(title: string, fields: Fields): TSchema {
  const shown = Object.entries(fields).map(([name, { usual, schema }]) => [
    name,
    Type.Optional(usual === undefined ? schema : { ...schema, default: usual }),
  ])
  return Type.Object(Object.fromEntries(shown) as Record<string, TSchema>, { title })
}

function namesOf(fields: Fields): string {
  const names = Object.keys(fields)
  return names.length === 0 ? 'none' : names.join(', ')
}
