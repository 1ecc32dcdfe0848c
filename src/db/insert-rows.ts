/**
 * Bulk inserts, 64 rows per statement: on SQLite, values common to all rows are bound only once, since binding takes longer than storing.
 *
 * Used by stores that write thousands of rows. A row is an array of values. A statement is compiled once per number of rows and set of
 * common values. PostgreSQL only infers types of values beside their columns, so there every row has all values.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from './database.js'
import { dialectOf } from './database.js'
import { CompiledQueries, inPieces, runCompiled } from './statement.js'

type Row = readonly unknown[]

export interface RowsInsert {
  readonly table: string
  /** @param width values per row @returns the column name of each */
  readonly columns: (width: number) => readonly string[]
  /** Expression used in a column in place of the plain value. */
  readonly written?: (db: Queries, column: string, value: RawBuilder<unknown>) => RawBuilder<unknown>
  /** On conflict, returning. */
  readonly rest?: RawBuilder<unknown>
}

/** How a column's values are passed: once for all rows, not at all (null), or per row. */
type Passed = 'once' | 'null' | 'each'

/** @returns a function that inserts rows of the same width in order, and returns the statement's rows */
export function rowsInsert(what: RowsInsert): (db: Queries, rows: readonly Row[]) => Promise<unknown[]> {
  const compiled = new CompiledQueries()
  return async (db, rows) => {
    const passed = howPassed(db, rows)
    const returned: unknown[] = []
    for (const piece of inPieces(rows)) {
      const shape = `${piece.length} ${passed.join()}`
      const query = compiled.get(db, shape, () => insertOf(what, db, piece.length, passed))
      const result = await runCompiled(db, { sql: query.sql, parameters: parametersOf(piece, passed) })
      for (const row of result.rows) returned.push(row)
    }
    return returned
  }
}

function howPassed(db: Queries, rows: readonly Row[]): readonly Passed[] {
  const [first = []] = rows
  const mayBeOnce = rows.length > 1 && dialectOf(db) === 'sqlite'
  const passed = first.map((value, at): Passed => {
    if (!mayBeOnce || rows.some(row => row[at] !== value)) return 'each'
    return value === null ? 'null' : 'once'
  })
  return passed.includes('each') ? passed : passed.map(() => 'each')
}

/** In the order that `insertOf` uses. */
function parametersOf(rows: readonly Row[], passed: readonly Passed[]): unknown[] {
  const parameters = (rows[0] ?? []).filter((_, at) => passed[at] === 'once')
  const each = [...passed.keys()].filter(at => passed[at] === 'each')
  for (const row of rows) for (const at of each) parameters.push(row[at])
  return parameters
}

function insertOf(
  { table, columns, written = (_db, _column, value) => value, rest = sql`` }: RowsInsert,
  db: Queries,
  count: number,
  passed: readonly Passed[],
): RawBuilder<unknown> {
  const names = columns(passed.length)
  const into = sql`insert into ${sql.table(table)} (${sql.join(names.map(name => sql.ref(name)))})`
  const place = (at: number) => written(db, names[at] ?? '', sql`${null}`)
  const rows = (values: readonly RawBuilder<unknown>[]) =>
    sql.join(Array.from({ length: count }, () => sql`(${sql.join(values)})`))
  if (!passed.some(one => one !== 'each'))
    return sql`${into} values ${rows(names.map((_, at) => place(at)))} ${rest}`
  let each = 0
  const selected = passed.map((one, at) => {
    if (one === 'once') return place(at)
    if (one === 'null') return sql`null`
    each += 1
    return written(db, names[at] ?? '', sql.raw(`column${each}`))
  })
  const values = Array.from({ length: each }, () => sql`${null}`)
  // The condition tells SQLite that `on conflict` belongs to the insert.
  return sql`${into} select ${sql.join(selected)} from (values ${rows(values)}) where true ${rest}`
}
