/** Pages of a list: the two query fields and the `pagination` object of the contract. */
import Type, { type TSchema } from 'typebox'

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, default: 100, description: 'Rows at most, default 100.' }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Rows to skip, default 0.' }),
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

export interface Page {
  readonly limit: number
  readonly offset: number
}

export function pageOf(query: { limit?: number; offset?: number }): Page {
  return { limit: query.limit ?? 100, offset: query.offset ?? 0 }
}

/** What a list route's handler returns. */
export interface Listing<T> {
  readonly items: readonly T[]
  /** Rows that match altogether. */
  readonly total: number
}

export function listBody<T>(listing: Listing<T>, page: Page): object {
  const { total, items } = listing
  return {
    data: items,
    pagination: {
      total,
      limit: page.limit,
      offset: page.offset,
      has_more: page.offset + items.length < total,
    },
  }
}

const PaginationSchema = Type.Object(
  {
    total: Type.Integer({ description: 'Rows that match altogether.' }),
    limit: Type.Integer(),
    offset: Type.Integer(),
    has_more: Type.Boolean(),
  },
  { title: 'Pagination' },
)

export function listSchema(item: TSchema): TSchema {
  return Type.Object({
    data: Type.Array(item),
    pagination: PaginationSchema,
  })
}
