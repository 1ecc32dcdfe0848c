/**
 * Pages of a list: the query fields `limit`, `offset` and `after`, and the `pagination` object of the contract.
 *
 * A long list also pages by `after`: a cursor with the position of the last row and the total of the first page, so that no page counts or
 * skips rows again. A cursor belongs to one list, its filters and its order, and a digest holds it to them. The digest has no key: a
 * forged cursor only chooses a position in a list that its caller may read anyway. Pure.
 */
import { createHash } from 'node:crypto'
import Type, { type TObject, type TSchema } from 'typebox'
import { AppError } from '../core/errors.js'

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, default: 100, description: 'Rows at most, default 100.' }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Rows to skip, default 0.' }),
  ),
}

/** Of a list that also pages by cursor: `listRoute` reads `after`, and the store takes it from the page. */
export const cursorQuery = {
  ...pageQuery,
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_500,
      description:
        '`next_cursor` of the page before, with the same filters and order. Deep pages are as fast as the first one. Not together with ' +
        'offset.',
    }),
  ),
}

/** The query field `search` of lists of things that have a name. */
export const nameSearch = {
  search: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Words, each of which stands somewhere in the name; case and accents do not count.',
    }),
  ),
}

/** Values of the columns that a list is ordered by, in one of its rows. */
export type Position = readonly (string | number)[]

/** Where a cursor page begins: behind the last row of the page before. */
export interface After {
  /** Rows that match altogether, as the first page counted them. */
  readonly total: number
  /** @param kinds of the columns that the list is ordered by @throws AppError validation_error for a position in another list */
  position(...kinds: readonly ('number' | 'text')[]): Position
}

export interface Page {
  readonly limit: number
  readonly offset: number
  readonly after?: After
}

interface PageQuery {
  readonly limit?: number
  readonly offset?: number
  readonly after?: string
}

export function pageOf(query: PageQuery): Page {
  return { limit: query.limit ?? 100, offset: query.offset ?? 0 }
}

/** @param scope says which list it is, in which order and with which filters @throws AppError validation_error */
export function cursorPageOf(query: PageQuery, scope: string): Page {
  const page = pageOf(query)
  if (query.after === undefined) return page
  if (page.offset > 0)
    throw new AppError('validation_error', 'give either after or offset, not both', { path: 'offset' })
  return { ...page, after: readCursor(query.after, scope) }
}

/** What a list route's handler returns. */
export interface Listing<T> {
  readonly items: readonly T[]
  /** Rows that match altogether. */
  readonly total: number
  /** Of a list that pages by cursor: the position of the last item. */
  readonly end?: Position | undefined
  /** Of a page that a cursor led to: whether rows follow. */
  readonly hasMore?: boolean
}

/** @param scope of a list that pages by cursor */
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
    'after is not a cursor of this list with these filters and this order; leave it out to start with the first page',
    { path: 'after' },
  )
}

const pagination = {
  total: Type.Integer({ description: 'Rows that match altogether.' }),
  limit: Type.Integer(),
  offset: Type.Integer(),
  has_more: Type.Boolean(),
}

const PaginationSchema = Type.Object(pagination, { title: 'Pagination' })

const CursorPaginationSchema = Type.Object(
  {
    ...pagination,
    total: Type.Integer({
      description: 'Rows that match altogether; with `after`, as the first page counted them.',
    }),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: '`after` of the next page; null on the last one.',
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

/** Whether a list with this query schema pages by cursor. */
export function takesCursor(query: TObject | undefined): boolean {
  return Object.hasOwn(query?.properties ?? {}, 'after')
}
