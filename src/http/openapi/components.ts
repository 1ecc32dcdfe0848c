/**
 * Named schemas of the API description. A schema with a `title` becomes a component under `components/schemas` and is referenced
 * everywhere else, so that client generators create a single type with that name.
 *
 * Called by `document.ts` for each schema. Converts TypeBox schemas into what client generators understand:
 * - a record's pattern becomes `additionalProperties`, and a free-form object gets `additionalProperties: true`;
 * - an enumeration of strings gets `type: string`;
 * - a field's default moves to its description: openapi-typescript makes fields with `default` required, in requests too;
 * - `shown` replaces the validating schema, which may be laxer; `shownFormat` is a format that is not enforced.
 *
 * Pure; never modifies its input. Throws if two different schemas have the same name.
 */
import { given } from '../../core/given.js'
import type { TSchema } from 'typebox'

/** A schema in the form used in the description. */
export type ShownSchema = Readonly<Record<string, unknown>>

/** Keywords whose value is one schema, a list of schemas, or a map of schemas. */
const ONE = ['items', 'additionalProperties', 'not']
const MANY = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const NAMED = ['properties']

export class Components {
  private readonly shown = new Map<string, ShownSchema>()

  /** @returns the schema for the description; a reference if it has a title */
  show(schema: TSchema): ShownSchema {
    const { title, ...unnamed } = describedForm(toPlain(schema))
    const inner = this.showInner(unnamed)
    if (typeof title !== 'string') return inner
    const known = this.shown.get(title)
    if (known && JSON.stringify(known) !== JSON.stringify(inner))
      throw new Error(`two different schemas are called ${title}`)
    this.shown.set(title, inner)
    return { $ref: `#/components/schemas/${title}` }
  }

  /** All named schemas, by name. */
  get schemas(): Readonly<Record<string, ShownSchema>> {
    return Object.fromEntries([...this.shown].sort(([one], [other]) => (one < other ? -1 : 1)))
  }

  private showInner(schema: Record<string, unknown>): ShownSchema {
    const shown = readable(schema)
    for (const key of ONE) if (isSchema(shown[key])) shown[key] = this.show(shown[key])
    for (const key of MANY)
      if (Array.isArray(shown[key])) shown[key] = (shown[key] as TSchema[]).map(one => this.show(one))
    for (const key of NAMED)
      if (isSchema(shown[key]))
        shown[key] = Object.fromEntries(
          Object.entries(shown[key]).map(([name, field]) => [
            name,
            this.show(withDefaultInWords(field as TSchema)),
          ]),
        )
    return shown
  }
}

/** Drops TypeBox's internal annotations, which JSON omits. */
function toPlain(schema: TSchema): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}

function isSchema(value: unknown): value is Record<string, unknown> & TSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isEmpty(value: unknown): boolean {
  return isSchema(value) && Object.keys(value).length === 0
}

function describedForm({ shown, shownFormat, ...schema }: Record<string, unknown>): Record<string, unknown> {
  if (isSchema(shown)) return { ...shown, ...given({ description: schema['description'] }) }
  return { ...schema, ...given({ format: shownFormat ?? schema['format'] }) }
}

function withDefaultInWords(schema: TSchema): TSchema {
  const { default: value, description, ...field } = schema as Record<string, unknown>
  if (value === undefined) return schema
  const words = [description, `Default: ${JSON.stringify(value)}.`].filter(Boolean).join(' ')
  return { ...field, description: words }
}

function readable({ patternProperties, ...schema }: Record<string, unknown>): Record<string, unknown> {
  const [values] = isSchema(patternProperties) ? Object.values(patternProperties) : []
  if (values !== undefined) return { ...schema, additionalProperties: isEmpty(values) ? true : values }
  const { properties, ...rest } = schema
  const isFreeForm =
    schema['type'] === 'object' && isEmpty(properties) && schema['additionalProperties'] !== false
  if (isFreeForm) return { ...rest, additionalProperties: true }
  const isText =
    Array.isArray(schema['enum']) &&
    schema['type'] === undefined &&
    schema['enum'].every(one => typeof one === 'string')
  return isText ? { type: 'string', ...schema } : schema
}
