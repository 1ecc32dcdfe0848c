/**
 * Named schemas of the API's description. A schema with a `title` is a component: it stands once under `components/schemas`,
 * and everything else refers to it, so that a client generator makes one type of it, by the name that people would give it.
 *
 * Called by `document.ts` for each schema it shows. Turns what TypeBox writes for itself into what generators understand: a
 * record's pattern becomes `additionalProperties`, an enumeration of texts says that it is text. Pure; never changes what it is given.
 * Fails: throws where two different schemas claim one name, which a test meets before a user does.
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

  /** @returns the schema as it is to stand in the description: a reference where it has a name */
  show(schema: TSchema): ShownSchema {
    const { title, ...unnamed } = toPlain(schema)
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
          Object.entries(shown[key]).map(([name, field]) => [name, this.show(field as TSchema)]),
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

/** `shownFormat` of a request's field tells its form without demanding it: more forms are taken than the format allows. */
function readable({
  patternProperties,
  shownFormat,
  ...schema
}: Record<string, unknown>): Record<string, unknown> {
  const [values] = isSchema(patternProperties) ? Object.values(patternProperties) : []
  const isText =
    Array.isArray(schema['enum']) &&
    schema['type'] === undefined &&
    schema['enum'].every(one => typeof one === 'string')
  return {
    ...(isText ? { type: 'string' } : {}),
    ...schema,
    ...given({ additionalProperties: values, format: shownFormat }),
  }
}
