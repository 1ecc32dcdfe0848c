/**
 * Which keys differ between two readings of the configuration, by their dotted names; a list of tables is one key.
 *
 * Called when a running server reads its file again. Names keys and never values, some of which are secret. Pure.
 */
import { isDeepStrictEqual } from 'node:util'
import { isTable, type Table } from './read-tables.js'

/** @param before, after in the file's words, with every key */
export function changedKeys(before: Table, after: Table, path: readonly string[] = []): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap(name => {
    const [was, is] = [before[name], after[name]]
    if (isTable(was) && isTable(is)) return changedKeys(was, is, [...path, name])
    return isDeepStrictEqual(was, is) ? [] : [[...path, name].join('.')]
  })
}
