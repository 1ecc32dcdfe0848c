/**
 * Pages of tables that a workspace has few rows in: counted, and read newest first.
 *
 * Called by stores, which say which rows are meant. For lists that may be long there are other ways (`audience/paging.ts`,
 * `msa/log/message-log-store.ts`). Fails: as the statements do.
 */
import { sql, type Selectable, type SelectQueryBuilder } from 'kysely'
import type { Tables } from './tables.js'

/** Rows that are meant: a table and conditions, nothing selected yet. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- what Kysely says of a query that selects nothing
type Matching<Table extends keyof Tables> = SelectQueryBuilder<Tables, Table, {}>

export async function countRows<Table extends keyof Tables>(matching: Matching<Table>): Promise<number> {
  const { total } = await matching.select(e => e.fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
  return total
}

/** @param key the column that grows with each row @returns what http/ shows as a page of a list */
export async function newestFirst<Table extends keyof Tables, Item>(
  matching: Matching<Table>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  fromRow: (row: Selectable<Tables[Table]>) => Item,
  key: 'seq' | 'id' = 'seq',
): Promise<{ readonly items: readonly Item[]; readonly total: number }> {
  const total = await countRows(matching)
  const rows = await matching.selectAll().orderBy(sql.ref(key), 'desc').limit(limit).offset(offset).execute()
  return { items: (rows as unknown as Selectable<Tables[Table]>[]).map(fromRow), total }
}
