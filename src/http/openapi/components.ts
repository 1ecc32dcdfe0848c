/**
 * Named schemas of the API's description. A schema with a `title` is a component: it stands once under `components/schemas`,
 * and everything else refers to it, so that a client generator makes one type of it, by the name that people would give it.
 *
 * Called by `document.ts` for each schema it shows. Turns what TypeBox writes for itself into what client generators understand:
 * - a record's pattern becomes `additionalProperties`, and an object of free form has `additionalProperties: true`;
 * - an enumeration of texts says that it is text;
 * - a field's default stands in its description: openapi-typescript makes a field with `default` required, in requests too;
 * - `shown` is described instead of the schema that validates, which may be laxer; `shownFormat` is a format that is not enforced.
 *
 * Pure; never changes its input. Throws if two different schemas claim one name.
 */
import { given } from '../../core/given.js'
import type { TSchema } from 'typebox'

/** A schema as the description shows it. */
export type ShownSchema = Readonly<Record<string, unknown>>

/** Keywords whose value is one schema, a list of them, or one for each name. */
const ONE = ['items', 'additionalProperties', 'not']
const MANY = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const NAMED = ['properties']

export class Components {
  private readonly shown = new Map<string, ShownSchema>()

  /** @returns the schema as the description shows it: a reference if it has a name */
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

  /** Every named schema that was shown, by name. */
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

/** TypeBox keeps remarks of its own beside the schema, which JSON does not show. */
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
