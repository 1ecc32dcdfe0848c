/**
 * Validates configuration tables against the schema and fills in defaults.
 *
 * Called by the loader. Pure. Continues after a fault so that all are reported at once.
 */
import { Value } from 'typebox/value'
import { quote } from './faults.js'
import { isTableList, suggestKey } from './key-names.js'
import type { SchemaNode } from './schema/fields.js'

export type Table = Readonly<Record<string, unknown>>

export interface Reading {
  /** Receives faults, in schema order. */
  readonly faults: string[]
  /** Source of a key's value, e.g. ` (POSTROAD_HTTP_LISTEN)`; empty for the file. */
  readonly origin: (path: readonly string[]) => string
  /** Dotted names of all keys, for suggestions. */
  readonly names: ReadonlySet<string>
}

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** @returns the table with every known key, in file notation; valid only if no fault was added */
export function readTable(
  node: SchemaNode,
  given: unknown,
  path: readonly string[],
  reading: Reading,
): Table {
  if (given !== undefined && !isTable(given)) {
    addFault(reading, path, 'must be a table')
    return {}
  }
  const known = node.properties ?? {}
  for (const name of Object.keys(given ?? {})) {
    if (Object.hasOwn(known, name)) continue
    const meant = suggestKey([...path, name], Object.keys(known), reading.names)
    addFault(reading, [...path, name], `unknown key${meant === undefined ? '' : `, did you mean ${meant}?`}`)
  }
  return Object.fromEntries(
    Object.entries(known).map(([name, child]) => [
      name,
      readKey(child, given?.[name], [...path, name], reading),
    ]),
  )
}

function readKey(node: SchemaNode, given: unknown, path: readonly string[], reading: Reading): unknown {
  if (node.type === 'object') return readTable(node, given, path, reading)
  if (given === undefined) {
    if (node.default === undefined) addFault(reading, path, `missing${exampleOf(node, path)}`)
    return node.default
  }
  if (node.type === 'array') return readList(node, given, path, reading)
  if (!Value.Check(node, given)) {
    const shown = node.secret === undefined ? `${quote(given)} ` : ''
    addFault(reading, path, `${shown}is not ${node.expected ?? node.type}`)
  }
  return given
}

function readList(node: SchemaNode, given: unknown, path: readonly string[], reading: Reading): unknown {
  const items = node.items
  if (!Array.isArray(given) || items === undefined) {
    addFault(
      reading,
      path,
      isTableList(node) ? `must be tables, [[${path.join('.')}]]` : 'must be a list, [...]',
    )
    return []
  }
  return given.map((value: unknown, index) => readKey(items, value, [...path, String(index)], reading))
}

function exampleOf(node: SchemaNode, path: readonly string[]): string {
  return node.example === undefined ? '' : `; e.g. ${path.at(-1) ?? ''} = ${quote(node.example)}`
}

function addFault(reading: Reading, path: readonly string[], what: string): void {
  reading.faults.push(`${path.join('.')}${reading.origin(path)}: ${what}`)
}
