/**
 * Many rows into one table, with a statement prepared once: for filling a database that no server runs on.
 *
 * Called by `fill-history.ts`. The columns are those that the table's own store declares; a row always has all of them.
 */
import type BetterSqlite from 'better-sqlite3'
import type { Selectable } from 'kysely'
import type { Tables } from '../../src/db/tables.js'

/** A row without the sequence number that the database gives. */
export type NewRow<T extends keyof Tables> = Omit<Selectable<Tables[T]>, 'seq'>

export function bulkInsert<T extends keyof Tables>(
  handle: BetterSqlite.Database,
  table: T,
): (row: NewRow<T>) => void {
  let prepared: BetterSqlite.Statement | undefined
  return row => {
    prepared ??= prepare(handle, table, Object.keys(row))
    prepared.run(row)
  }
}

function prepare(handle: BetterSqlite.Database, table: string, columns: readonly string[]) {
  const places = columns.map(column => `@${column}`)
  return handle.prepare(`insert into ${table} (${columns.join(', ')}) values (${places.join(', ')})`)
}
