/**
 * Renames configuration keys for the code: the duration `final_dot` of `[mta.timeouts]` becomes `mta.timeouts.finalDotMs`.
 *
 * Durations get the suffix `Ms` and sizes `Bytes`, so that every number carries its unit. Types are derived from the schema. Pure.
 */
import type { StaticDecode, TArray, TObject, TSchema } from 'typebox'
import type { Milliseconds, Octets, SchemaNode } from './schema/fields.js'
import { isTable } from './read-tables.js'

type CamelCase<Name> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name & string

type NameOf<Key, Schema extends TSchema> =
  StaticDecode<Schema> extends Milliseconds
    ? `${CamelCase<Key>}Ms`
    : StaticDecode<Schema> extends Octets
      ? `${CamelCase<Key>}Bytes`
      : CamelCase<Key>

/** The decoded type of a schema, with names as in the code. */
export type Named<Schema extends TSchema> =
  Schema extends TObject<infer Keys>
    ? { readonly [Key in keyof Keys as NameOf<Key, Keys[Key]>]: Named<Keys[Key]> }
    : Schema extends TArray<infer Item>
      ? readonly Named<Item>[]
      : StaticDecode<Schema> extends Milliseconds | Octets
        ? number
        : StaticDecode<Schema>

const SUFFIXES = { ms: 'Ms', octets: 'Bytes' } as const

/** @param decoded the decoded value of the node */
export function named(node: SchemaNode, decoded: unknown): unknown {
  const { items, properties } = node
  if (properties && isTable(decoded))
    return Object.fromEntries(
      Object.entries(properties).map(([key, child]) => [nameOf(key, child), named(child, decoded[key])]),
    )
  return items && Array.isArray(decoded) ? decoded.map(item => named(items, item)) : decoded
}

function nameOf(key: string, { unit }: SchemaNode): string {
  const name = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  return unit === undefined ? name : name + SUFFIXES[unit]
}
