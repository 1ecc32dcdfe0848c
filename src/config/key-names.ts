/**
 * Names of configuration keys: dotted paths, environment variables, and suggestions for mistyped keys.
 *
 * Used by the loader and the generators. Pure. A list of tables is one key; the keys of its tables have the list's path plus their own
 * name (`mta.routes.host`).
 */
import { distance } from 'fastest-levenshtein'
import { nodeOf, type SchemaNode } from './schema/fields.js'
import type { ConfigSchema } from './schema/schema.js'

export interface KnownKey {
  /** Segments, e.g. `['mta', 'retry', 'first']`. */
  readonly path: readonly string[]
  readonly node: SchemaNode
  /** Whether this version uses it. */
  readonly effective: boolean
  /** Whether it belongs to the tables of a list; such keys have no environment variable. */
  readonly inList: boolean
}

/** Whether the node is a list of tables. */
export function isTableList(node: SchemaNode): boolean {
  return node.type === 'array' && node.items?.type === 'object'
}

/** Keys below a node in schema order; sections follow the keys of their parent, as TOML requires. */
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

/** All keys. */
export function knownKeys(schema: ConfigSchema): KnownKey[] {
  return keysBelow(nodeOf(schema))
}

/** `mta.retry.first` -> `POSTROAD_MTA_RETRY_FIRST`. */
export function environmentName(path: readonly string[]): string {
  return `POSTROAD_${path.join('_').toUpperCase()}`
}

/** Keys that can be set by an environment variable, by variable name. */
export function environmentKeys(schema: ConfigSchema): ReadonlyMap<string, KnownKey> {
  const keys = knownKeys(schema).filter(key => !key.inList)
  return new Map(keys.map(key => [environmentName(key.path), key]))
}

/** Dotted names of all keys and sections. */
export function dottedNames(schema: ConfigSchema): ReadonlySet<string> {
  return new Set(
    knownKeys(schema).flatMap(({ path }) => path.map((_, index) => path.slice(0, index + 1).join('.'))),
  )
}

/**
 * Suggests a key for a mistyped one: a similar key of the same table, else any similar key, else one with the same name elsewhere.
 *
 * @param path of the mistyped key, list indexes included
 * @param siblings keys of its table
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

/** Longer names are not typos; this also bounds the work. */
const MAX_LENGTH = 100

/**
 * @param known candidate names
 * @returns the first closest name within a third of the length (at least 2 edits, to allow a swap of neighbours), or undefined
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > MAX_LENGTH) return undefined
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const edits = distance(name.toLowerCase(), candidate.toLowerCase())
    // Two edits turn any two-letter word into any other.
    if (edits >= bestDistance || edits >= candidate.length) continue
    best = candidate
    bestDistance = edits
  }
  return best
}

/**
 * Suggests an environment variable for an unknown one, word by word: `SMTP` is no typo of `HTTP`, and a word may be missing or too many.
 *
 * @param known all variables
 * @returns the only one that shares most words, at least half of them; undefined if several do
 */
export function nearestVariable(name: string, known: Iterable<string>): string | undefined {
  if (name.length > MAX_LENGTH) return undefined
  const words = wordsOf(name)
  let best: string | undefined
  let bestShare = 0
  for (const candidate of known) {
    const theirs = wordsOf(candidate)
    const share = countShared(words, theirs) / Math.max(words.length, theirs.length)
    if (share < 0.5 || share < bestShare) continue
    best = share === bestShare ? undefined : candidate
    bestShare = share
  }
  return best
}

/** Without the prefix that all variables have. */
function wordsOf(variable: string): readonly string[] {
  return variable.toLowerCase().split('_').slice(1)
}

function countShared(words: readonly string[], theirs: readonly string[]): number {
  const left = [...theirs]
  let shared = 0
  for (const word of words) {
    const at = left.findIndex(other => isTypoOf(word, other))
    if (at < 0) continue
    left.splice(at, 1)
    shared += 1
  }
  return shared
}

/** Two edits, as neighbours that are swapped, from five letters on: two turn `SMTP` into `HTTP`. */
function isTypoOf(word: string, other: string): boolean {
  if (word === other) return true
  return other.length > 2 && distance(word, other) <= (other.length < 5 ? 1 : 2)
}
