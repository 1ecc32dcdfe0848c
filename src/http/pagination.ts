/**
 * Pagination of lists: the query parameters `limit`, `offset` and `after`, and the `pagination` object of the contract.
 *
 * `after` is a cursor that holds the position of the last row and the total, so that later pages neither count nor skip rows. A digest binds a cursor to one list, its filters and its order. The digest needs no secret: a forged cursor only
 * selects a position in a list the caller may read anyway. Pure.
 */
import { createHash } from 'node:crypto'
import Type, { type TObject, type TSchema } from 'typebox'
import { AppError } from '../core/errors.js'

const pageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      default: 100,
      description: 'Maximum number of rows, default 100.',
    }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Rows to skip, default 0.' }),
  ),
}

/** For results that are not a list of their own, such as those of a batch. */
export const OffsetQuery = Type.Object(pageQuery, { additionalProperties: false })

/** Of every list: `listRoute` reads `after` and passes it to the store in the page. */
export const cursorQuery = {
  ...pageQuery,
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_500,
      description:
        '`next_cursor` of the previous page, with the same filters and order. Faster than `offset` on deep pages; cannot be combined ' +
        'with it.',
    }),
  ),
  count: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        'false: do not count matching rows, which takes long in large lists. `total` is then a lower bound. Without effect on pages with ' +
        '`after` or `offset`.',
    }),
  ),
}

/** The query of a list without filters. */
export const PageQuery = Type.Object(cursorQuery, { additionalProperties: false })

/** The query parameter `search` of lists whose items have a name. */
export const nameSearch = {
  search: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Words that must all occur in the name, ignoring case and accents.',
    }),
  ),
}

/** Values of a row in the columns that a list is sorted by. */
export type Position = readonly (string | number)[]

/** Start of a cursor page: after the last row of the previous one. */
export interface After {
  /** Total matching rows, as counted for the first page. */
  readonly total: number
  /** @param kinds types of the sort columns @throws AppError validation_error for a cursor of another list */
  position(...kinds: readonly ('number' | 'text')[]): Position
}

export interface Page {
  readonly limit: number
  readonly offset: number
  readonly after?: After
  /** A first page whose total is not wanted: the number of rows that were read is enough. */
  readonly isUncounted?: true
}

interface PageFields {
  readonly limit?: number
  readonly offset?: number
  readonly after?: string
  readonly count?: boolean
}

export function pageOf(query: PageFields): Page {
  return { limit: query.limit ?? 100, offset: query.offset ?? 0 }
}

/** @param scope identifies the list, its order and its filters @throws AppError validation_error */
export function cursorPageOf(query: PageFields, scope: string): Page {
  const page = pageOf(query)
  if (query.after === undefined)
    return query.count === false && page.offset === 0 ? { ...page, isUncounted: true } : page
  if (page.offset > 0)
    throw new AppError('validation_error', 'give either after or offset, not both', { path: 'offset' })
  return { ...page, after: readCursor(query.after, scope) }
}

/** A page, as a list route's handler returns it. */
export interface Listing<T> {
  readonly items: readonly T[]
  /** Total matching rows. */
  readonly total: number
  /** Position of the last item, for the cursor. */
  readonly end: Position | undefined
  /** For cursor pages: whether more rows follow. */
  readonly hasMore?: boolean
}

/**
 * A page of a list that is in memory.
 *
 * @param keyOf unique; a page after an item that is gone begins where the item was
 */
export function listingOf<A, T>(
  all: readonly A[],
  { offset, limit, after }: Page,
  toApi: (one: A) => T,
  keyOf: (one: A) => string,
): Listing<T> {
  const start = after ? startAfter(after.position('text', 'number'), all.map(keyOf)) : offset
  const items = all.slice(start, start + limit)
  const last = items.at(-1)
  return {
    items: items.map(toApi),
    total: after?.total ?? all.length,
    end: last === undefined ? undefined : [keyOf(last), start + items.length - 1],
    hasMore: start + items.length < all.length,
  }
}

function startAfter([key, index]: Position, keys: readonly string[]): number {
  const found = keys.indexOf(String(key))
  return found === -1 ? Number(index) : found + 1
}

/** @param scope of the cursor; undefined for pages by offset only */
export function listBody<T>(listing: Listing<T>, page: Page, scope?: string): object {
  const { total, items, end } = listing
  const hasMore = listing.hasMore ?? page.offset + items.length < total
  return {
    data: items,
    pagination: {
      total,
      limit: page.limit,
      offset: page.offset,
      has_more: hasMore,
      ...(scope === undefined ? {} : { next_cursor: hasMore && end ? cursorOf(end, total, scope) : null }),
    },
  }
}

function cursorOf(position: Position, total: number, scope: string): string {
  const content = Buffer.from(JSON.stringify([total, ...position])).toString('base64url')
  return `${content}.${digestOf(content, scope)}`
}

function readCursor(text: string, scope: string): After {
  const [content = '', digest = '', ...rest] = text.split('.')
  if (rest.length > 0 || digest !== digestOf(content, scope)) throw foreignCursor()
  const [total, ...position] = readContent(content)
  if (typeof total !== 'number') throw foreignCursor()
  return {
    total,
    position(...kinds) {
      const isOfKinds =
        position.length === kinds.length &&
        position.every((value, at) => typeof value === (kinds[at] === 'number' ? 'number' : 'string'))
      if (!isOfKinds) throw foreignCursor()
      return position as Position
    },
  }
}

function readContent(content: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(content, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

function digestOf(content: string, scope: string): string {
  return createHash('sha256').update(`${scope}\n${content}`).digest('base64url').slice(0, 16)
}

function foreignCursor(): AppError {
  return new AppError(
    'validation_error',
    'after is not a cursor of this list with these filters and this order; omit it to start with the first page',
    { path: 'after' },
  )
}

const pagination = {
  total: Type.Integer({ description: 'Total matching rows.' }),
  limit: Type.Integer(),
  offset: Type.Integer(),
  has_more: Type.Boolean(),
}

const PaginationSchema = Type.Object(pagination, { title: 'Pagination' })

const CursorPaginationSchema = Type.Object(
  {
    ...pagination,
    total: Type.Integer({
      description:
        'Total matching rows; with `after`, as counted for the first page; with `count=false`, a lower bound.',
    }),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: '`after` for the next page; null on the last page.',
    }),
  },
  { title: 'CursorPagination' },
)

/** @param query of the route */
export function listSchema(item: TSchema, query: TObject | undefined): TSchema {
  return Type.Object({
    data: Type.Array(item),
    pagination: takesCursor(query) ? CursorPaginationSchema : PaginationSchema,
  })
}

/** Whether a list with this query schema supports cursors. */
export function takesCursor(query: TObject | undefined): boolean {
  return Object.hasOwn(query?.properties ?? {}, 'after')
}
