/** Rows of a whole database, whatever its schema: putting some in, and reading all of them. */
import { sql, type Kysely } from 'kysely'
import type { Queries } from '../../../src/db/database.js'
import type { Rows, RowValue } from '../../db/migration-rows.js'

/** A row as text can be compared and sorted. */
export type ReadRow = Readonly<Record<string, unknown>>
export type ReadRows = ReadonlyMap<string, readonly ReadRow[]>

type AnyTables = Record<string, Record<string, RowValue>>

export async function insertRows(db: Queries, rows: Rows): Promise<void> {
  for (const [table, ofTable] of Object.entries(rows))
    for (const row of ofTable)
      await (db as unknown as Kysely<AnyTables>).insertInto(table).values(row).execute()
}

/** An index that SQLite keeps as tables. */
const INDEX = /^contact_search/

/** By table, but for what the migrations keep of themselves. */
export async function readAllRows(db: Queries): Promise<ReadRows> {
  const read = new Map<string, readonly ReadRow[]>()
  const tables = await db.introspection.getTables()
  for (const { name } of tables.filter(
    table => !table.name.startsWith('schema_migrations') && !INDEX.test(table.name),
  )) {
    const { rows } = await sql<ReadRow>`select * from ${sql.table(name)}`.execute(db)
    // PostgreSQL returns rows in the order in which space for them was free.
    const texts = rows.map(row => JSON.stringify(comparable(row))).sort()
    read.set(
      name,
      texts.map(text => JSON.parse(text) as ReadRow),
    )
  }
  return read
}

function comparable(row: ReadRow): ReadRow {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    ]),
  )
}

/** Rows in a fixed order, with these columns only. */
export function sorted(rows: readonly ReadRow[], columns: readonly string[]): string[] {
  return rows.map(row => JSON.stringify(columns.map(column => row[column]))).sort()
}
