/** Makes a small installation a large one: each row of the tables that grow with mail is copied, under ids of its own, by SQL alone. */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../../src/db/database.js'
import type { Tables } from '../../src/db/tables.js'

/** Tables that grow with mail, referenced ones first. Columns of ids are rewritten; a serial key is left to the database. */
const GROWING: readonly { readonly table: string; readonly ids: readonly string[] }[] = [
  { table: 'message_contents', ids: ['id'] },
  { table: 'messages', ids: ['id', 'content_id'] },
  { table: 'attempts', ids: ['message_id'] },
  { table: 'queue', ids: ['message_id', 'content_id'] },
  { table: 'bounces', ids: ['id', 'message_id'] },
  { table: 'events', ids: [] },
  { table: 'webhook_payloads', ids: [] },
  { table: 'webhook_deliveries', ids: ['id'] },
  { table: 'webhook_attempts', ids: ['delivery_id'] },
]

/** @param copies of each row beside the row itself, up to 65,535 @param per copies made in one transaction */
export async function multiplyRows(
  db: Kysely<Tables>,
  dialect: Dialect,
  copies: number,
  per = 100,
): Promise<void> {
  for (const { table, ids } of GROWING) {
    const columns = await columnsOf(db, dialect, table)
    const original = `original_${table}`
    await sql.raw(`create table ${original} as select ${columns.join(', ')} from ${table}`).execute(db)
    const values = columns.map(column => (ids.includes(column) ? copiedId(column) : `o.${column}`))
    for (let first = 1; first <= copies; first += per)
      await sql
        .raw(
          `insert into ${table} (${columns.join(', ')})
          with recursive numbers (n) as (select ${first} union all select n + 1 from numbers where n < ${Math.min(copies, first + per - 1)})
          select ${values.join(', ')} from numbers cross join ${original} as o`,
        )
        .execute(db)
    await sql.raw(`drop table ${original}`).execute(db)
  }
}

/** The number of the copy takes the place of random digits that no two ids of the installation differ in alone. */
function copiedId(column: string): string {
  return `substr(o.${column}, 1, 19) || substr(cast(10000 + n % 10000 as text), 2, 4) || '-' || cast(n / 10000 as text) || substr(o.${column}, 26)`
}

async function columnsOf(db: Kysely<Tables>, dialect: Dialect, table: string): Promise<string[]> {
  const { rows } = await (
    dialect === 'sqlite'
      ? sql<{ name: string }>`select name from pragma_table_info(${table})`
      : sql<{
          name: string
        }>`select column_name as name from information_schema.columns where table_name = ${table} order by ordinal_position`
  ).execute(db)
  return rows.map(({ name }) => name).filter(name => name !== 'seq')
}
