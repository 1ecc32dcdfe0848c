/**
 * Offset and cursor pages for tables with few rows per workspace, mostly newest first.
 *
 * Used by stores. Long lists have their own paging (`audience/paging.ts`, `msa/log/message-log-store.ts`).
 */
import { sql, type RawBuilder, type Selectable, type SelectQueryBuilder } from 'kysely'
import type { Tables } from './tables.js'

/** The rows to list: a table and conditions, nothing selected yet. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- what Kysely says of a query that selects nothing
type Matching<Table extends keyof Tables> = SelectQueryBuilder<Tables, Table, {}>

export async function countRows<Table extends keyof Tables>(matching: Matching<Table>): Promise<number> {
  const { total } = await matching.select(e => e.fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
  return total
}

export interface Listed<Item> {
  readonly items: readonly Item[]
  readonly total: number
  readonly end: readonly (string | number)[] | undefined
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
  readonly isUncounted?: true
}

/** Sort order, all columns in one direction: unique together, and backed by an index in this order. */
export interface KeysetOrder {
  readonly columns: readonly string[]
  readonly kinds: readonly ('number' | 'text')[]
  readonly direction: 'asc' | 'desc'
}

/** Rows after a position. */
export function isBehind(order: KeysetOrder, position: readonly unknown[]): RawBuilder<boolean> {
  return compared(order, order.direction === 'asc' ? '>' : '<', position)
}

/** Rows up to and including a position. */
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
 * A page of rows in this order, after its cursor or at an offset. Pages with a cursor, and those that say so, are not counted.
 *
 * @param known total number of rows, if stored
 * @returns the page with the position of its last row, for the next cursor
 */
export async function keysetPage<Table extends keyof Tables, Item>(
  matching: Matching<Table>,
  order: KeysetOrder,
  page: PageOf,
  fromRow: (row: Selectable<Tables[Table]>) => Item,
  known?: number,
): Promise<Listed<Item>> {
  const selected = matching.selectAll() as unknown as RowsOf<Selectable<Tables[Table]>>
  return keysetPageOf(matching, selected, order, page, fromRow, known)
}

/** `keysetPage` of some columns, for tables with large ones. @param selected a query, with the columns of the order */
export async function keysetPageOf<Table extends keyof Tables, Row, Item>(
  matching: Matching<Table>,
  selected: { execute(): Promise<Row[]> },
  order: KeysetOrder,
  page: PageOf,
  fromRow: (row: Row) => Item,
  known?: number,
): Promise<Listed<Item>> {
  const { limit, offset, after, isUncounted } = page
  let rows = selected as unknown as RowsOf<Row>
  for (const column of order.columns) rows = rows.orderBy(sql.ref(column), order.direction)
  if (after || (isUncounted && known === undefined)) {
    if (after) rows = rows.where(isBehind(order, after.position(...order.kinds)))
    const found = await rows.limit(limit + 1).execute()
    return {
      ...shownOf(found.slice(0, limit), order, fromRow),
      total: after?.total ?? found.length,
      hasMore: found.length > limit,
    }
  }
  const counted = known === undefined ? countRows(matching) : Promise.resolve(known)
  const [found, total] = await Promise.all([rows.limit(limit).offset(offset).execute(), counted])
  return { ...shownOf(found, order, fromRow), total }
}

/** The part of a query builder used here. */
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

/** @param key column that grows with each row @param total number of rows, if stored */
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
