/**
 * The names of configuration keys: dotted paths, environment variables, and what a mistyped one may have meant.
 *
 * Called by the loader and the generators with the schema. Pure. A list of tables is one key here; its tables' keys have the path of
 * the list and their own name (`mta.routes.host`).
 */
import { nodeOf, type SchemaNode } from './schema/fields.js'
import { nearestName } from './nearest.js'
import type { ConfigSchema } from './schema/schema.js'

export interface KnownKey {
  /** Segments, e.g. `['mta', 'retry', 'first']`. */
  readonly path: readonly string[]
  readonly node: SchemaNode
  /** Whether anything reads it in this version. */
  readonly effective: boolean
  /** Whether it is a key of the tables in a list of tables; those have no environment variable of their own. */
  readonly inList: boolean
}

/** Whether the node is a list of tables. */
export function isTableList(node: SchemaNode): boolean {
  return node.type === 'array' && node.items?.type === 'object'
}

/** Keys below a node, in the order of the schema; sections come after the keys of their parent, as TOML wants it. */
export function keysBelow(
  node: SchemaNode,
  path: readonly string[] = [],
  effective = true,
  inList = false,
): KnownKey[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const key = {
      path: [...path, name],
      node: child,
      effective: effective && child.effective !== false,
      inList,
    }
    if (child.type === 'object') return keysBelow(child, key.path, key.effective, inList)
    return isTableList(child)
      ? [key, ...keysBelow(child.items ?? child, key.path, key.effective, true)]
      : [key]
  })
}

/** Every key there is. */
export function knownKeys(schema: ConfigSchema): KnownKey[] {
  return keysBelow(nodeOf(schema))
}

/** `mta.retry.first` -> `POSTROAD_MTA_RETRY_FIRST`. */
export function environmentName(path: readonly string[]): string {
  return `POSTROAD_${path.join('_').toUpperCase()}`
}

/** Every key that an environment variable can override, by its variable. */
export function environmentKeys(schema: ConfigSchema): ReadonlyMap<string, KnownKey> {
  const keys = knownKeys(schema).filter(key => !key.inList)
  return new Map(keys.map(key => [environmentName(key.path), key]))
}

/** Dotted names of all keys and of the sections they stand in. */
export function dottedNames(schema: ConfigSchema): ReadonlySet<string> {
  return new Set(
    knownKeys(schema).flatMap(({ path }) => path.map((_, index) => path.slice(0, index + 1).join('.'))),
  )
}

/**
 * What a mistyped key may have meant: a key of the same table, else any key that reads alike, else one that has the
 * same name in another section.
 *
 * @param path where it stands, list positions included
 * @param siblings keys that its table knows
 * @param all dotted names of all keys
 */
export function suggestKey(
  path: readonly string[],
  siblings: readonly string[],
  all: ReadonlySet<string>,
): string | undefined {
  const name = path.at(-1) ?? ''
  const sibling = nearestName(name, siblings)
  if (sibling !== undefined) return [...path.slice(0, -1), sibling].join('.')
  const withoutPositions = path.filter(segment => !/^\d+$/.test(segment)).join('.')
  return nearestName(withoutPositions, all) ?? [...all].find(known => known.endsWith(`.${name}`))
}
