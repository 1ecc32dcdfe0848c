/**
 * Pages of tables that a workspace has few rows in: counted, and read in some order, mostly newest first.
 *
 * Called by stores, which say which rows are meant. For lists that may be long there are other ways (`audience/paging.ts`,
 * `msa/log/message-log-store.ts`). Fails: as the statements do.
 */
import { sql, type RawBuilder, type Selectable, type SelectQueryBuilder } from 'kysely'
import type { Tables } from './tables.js'

/** Rows that are meant: a table and conditions, nothing selected yet. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- what Kysely says of a query that selects nothing
type Matching<Table extends keyof Tables> = SelectQueryBuilder<Tables, Table, {}>

export async function countRows<Table extends keyof Tables>(matching: Matching<Table>): Promise<number> {
  const { total } = await matching.select(e => e.fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
  return total
}

export interface Listed<Item> {
  readonly items: readonly Item[]
  readonly total: number
  readonly end?: readonly (string | number)[] | undefined
  readonly hasMore?: boolean
}

/** The part of http's `Page` that is read here. */
export interface PageOf {
  readonly limit: number
  readonly offset: number
  readonly after?: {
    readonly total: number
    position(...kinds: readonly ('number' | 'text')[]): readonly (string | number)[]
  }
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

/** What a list is ordered by, all columns in one direction: together they are unique, and an index has them in this order. */
export interface KeysetOrder {
  readonly columns: readonly string[]
  readonly kinds: readonly ('number' | 'text')[]
  readonly direction: 'asc' | 'desc'
}

/** Rows behind a position. */
export function isBehind(order: KeysetOrder, position: readonly unknown[]): RawBuilder<boolean> {
  return compared(order, order.direction === 'asc' ? '>' : '<', position)
}

/** Rows up to a position, and the one there. */
export function isUpTo(order: KeysetOrder, position: readonly unknown[]): RawBuilder<boolean> {
  return compared(order, order.direction === 'asc' ? '<=' : '>=', position)
}

function compared(
  { columns }: KeysetOrder,
  operator: '<' | '>' | '<=' | '>=',
  position: readonly unknown[],
): RawBuilder<boolean> {
  const sign = sql.raw(operator)
  const [column = ''] = columns
  if (columns.length === 1) return sql<boolean>`${sql.ref(column)} ${sign} ${position[0]}`
  return sql<boolean>`(${sql.join(columns.map(one => sql.ref(one)))}) ${sign} (${sql.join(position)})`
}

/**
 * A page of rows in this order: behind its cursor, or with an offset. Rows are counted for pages without a cursor only.
 *
 * @param known how many rows there are, where that is kept
 * @returns with the position of the last row, for the cursor of the next page
 */
export async function keysetPage<Table extends keyof Tables, Item>(
  matching: Matching<Table>,
  order: KeysetOrder,
  page: PageOf,
  fromRow: (row: Selectable<Tables[Table]>) => Item,
  known?: number,
): Promise<Listed<Item>> {
  const { limit, offset, after } = page
  let rows = matching.selectAll() as unknown as RowsOf<Selectable<Tables[Table]>>
  for (const column of order.columns) rows = rows.orderBy(sql.ref(column), order.direction)
  if (after) {
    const found = await rows
      .where(isBehind(order, after.position(...order.kinds)))
      .limit(limit + 1)
      .execute()
    return {
      ...shownOf(found.slice(0, limit), order, fromRow),
      total: after.total,
      hasMore: found.length > limit,
    }
  }
  const counted = known === undefined ? countRows(matching) : Promise.resolve(known)
  const [found, total] = await Promise.all([rows.limit(limit).offset(offset).execute(), counted])
  return { ...shownOf(found, order, fromRow), total }
}

/** The part of a query builder that is used here. */
interface RowsOf<Row> {
  where(condition: RawBuilder<boolean>): RowsOf<Row>
  orderBy(column: RawBuilder<unknown>, direction: 'asc' | 'desc'): RowsOf<Row>
  limit(rows: number): RowsOf<Row>
  offset(rows: number): RowsOf<Row>
  execute(): Promise<Row[]>
}

function shownOf<Row, Item>(rows: readonly Row[], { columns }: KeysetOrder, fromRow: (row: Row) => Item) {
  const last = rows.at(-1) as Readonly<Record<string, string | number>> | undefined
  return { items: rows.map(fromRow), end: last && columns.map(column => last[column] ?? '') }
}

/** @param key the column that grows with each row @param total how many rows there are, where that is kept */
export async function newestFirst<Table extends keyof Tables, Item>(
  matching: Matching<Table>,
  page: PageOf,
  fromRow: (row: Selectable<Tables[Table]>) => Item,
  key: 'seq' | 'id' = 'seq',
  total?: number,
): Promise<Listed<Item>> {
  const kind = key === 'seq' ? 'number' : 'text'
  return keysetPage(matching, { columns: [key], kinds: [kind], direction: 'desc' }, page, fromRow, total)
}
