/**
 * Pages of tables that a workspace has few rows in: counted, and read in some order, mostly newest first.
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

interface Listed<Item> {
  readonly items: readonly Item[]
  readonly total: number
}

/**
 * Both are asked at once: where long reads have threads, nobody waits for one and then for the other.
 *
 * @param page the rows of these that are shown @returns what http/ shows as a page of a list
 */
export async function pageWithTotal<Table extends keyof Tables, Row, Item>(
  matching: Matching<Table>,
  page: { execute(): Promise<Row[]> },
  fromRow: (row: Row) => Item,
): Promise<Listed<Item>> {
  const [rows, total] = await Promise.all([page.execute(), countRows(matching)])
  return { items: rows.map(fromRow), total }
}

/** @param key the column that grows with each row */
export async function newestFirst<Table extends keyof Tables, Item>(
  matching: Matching<Table>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  fromRow: (row: Selectable<Tables[Table]>) => Item,
  key: 'seq' | 'id' = 'seq',
): Promise<Listed<Item>> {
  const page = matching.selectAll().orderBy(sql.ref(key), 'desc').limit(limit).offset(offset)
  return pageWithTotal(matching, page, row => fromRow(row as unknown as Selectable<Tables[Table]>))
}
