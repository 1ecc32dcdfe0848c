/**
 * Lists the keys that differ between two configurations, by dotted name; a list of tables counts as one key.
 *
 * Called on reload. Returns names only, since values can be secret. Pure.
 */
import { isDeepStrictEqual } from 'node:util'
import { isTable, type Table } from './read-tables.js'

/** @param before, after in file notation, with every key */
export function changedKeys(before: Table, after: Table, path: readonly string[] = []): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap(name => {
    const [was, is] = [before[name], after[name]]
    if (isTable(was) && isTable(is)) return changedKeys(was, is, [...path, name])
    return isDeepStrictEqual(was, is) ? [] : [[...path, name].join('.')]
  })
}
