/**
 * Treats null in an optional field as absent, because many clients serialize every field of their model.
 *
 * Used by `route.ts` before validation. Null is kept where the schema allows it (it clears a name, say), in required fields, which are
 * then rejected, and in free-form objects such as template_data. Pure; never modifies its input. Fails: never.
 */
import type { TSchema } from 'typebox'

type WithoutNulls = (value: unknown) => unknown

/** The parts of a JSON Schema used here. */
interface Schema {
  readonly type?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

/** @returns a function that removes such fields at any depth the schema describes */
export function absentWhereNull(schema: TSchema): WithoutNulls {
  return forSchema(schema) ?? (value => value)
}

/** @returns undefined if nothing can be removed */
function forSchema({ properties, required = [], items }: Schema): WithoutNulls | undefined {
  if (items) {
    const ofEntry = forSchema(items)
    return ofEntry && (value => (Array.isArray(value) ? value.map(ofEntry) : value))
  }
  if (!properties) return undefined
  const entries = Object.entries(properties)
  const optional = entries.filter(([name, field]) => !required.includes(name) && !takesNull(field))
  const within = entries.flatMap(([name, field]) => {
    const ofField = forSchema(field)
    return ofField ? [[name, ofField] as const] : []
  })
  if (optional.length === 0 && within.length === 0) return undefined
  const names = new Set(optional.map(([name]) => name))
  return value => (isObject(value) ? withoutNulls(value, names, within) : value)
}

function withoutNulls(
  value: Readonly<Record<string, unknown>>,
  names: ReadonlySet<string>,
  within: readonly (readonly [string, WithoutNulls])[],
): unknown {
  const entries = Object.entries(value)
  const isAbsent = ([name, field]: readonly [string, unknown]) => field === null && names.has(name)
  const kept = entries.some(isAbsent) ? Object.fromEntries(entries.filter(one => !isAbsent(one))) : value
  const changed = within.flatMap(([name, ofField]) => {
    const field = kept[name]
    return isObject(field) || Array.isArray(field) ? [[name, ofField(field)] as const] : []
  })
  return changed.every(([name, field]) => field === kept[name])
    ? kept
    : { ...kept, ...Object.fromEntries(changed) }
}

function takesNull({ type, const: only, enum: values, anyOf }: Schema): boolean {
  if (anyOf) return anyOf.some(takesNull)
  if (values) return values.includes(null)
  // A schema without a type allows anything.
  return type === 'null' || (type === undefined && only === undefined) || only === null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
