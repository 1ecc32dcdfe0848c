/** Rows of a list, read page by page: which pages are read, and where a list is read again from. Pure but for `read`. */

export interface Listed<T> {
  readonly data: readonly T[]
  readonly pagination: {
    readonly total: number
    readonly has_more: boolean
    readonly next_cursor?: string | null
  }
}

export interface Wanted {
  readonly limit: number
  readonly offset?: number
  readonly after?: string
  readonly count?: false
}

/** `later`: rows are shown before they are counted. Both others than `first` need a list that takes `count=false`. */
export type Counting = 'first' | 'later' | 'never'

/** Consecutive empty pages after which a search is paused. */
export const MAX_BARREN = 5
/** Most rows that are read at once; the API’s maximum. */
export const MOST_AT_ONCE = 1_000
/** Lists that are longer are read again from near what is seen. */
export const MOST_READ_AGAIN = 2_000

/** Where a page began: the number of rows before it, and the cursor it was read with. */
export interface Mark {
  readonly index: number
  readonly cursor: string | undefined
}

export const START: Mark = { index: 0, cursor: undefined }

/** The rows that were read, and where they begin and end. */
export interface Rows<T> {
  readonly rows: readonly T[]
  /** Of their pages, ascending. */
  readonly marks: readonly Mark[]
  /** Of the page after the last one. */
  readonly cursor: string | undefined
}

export interface ReadRows<T> extends Rows<T> {
  /** Of the last page. */
  readonly total: number
  readonly isLast: boolean
  /** Too many consecutive pages were empty, as in a search without matches. */
  readonly isPaused: boolean
}

export const NO_ROWS: Rows<never> = { rows: [], marks: [], cursor: undefined }

/**
 * Reads rows and puts them after those before the mark.
 *
 * @param wanted rows at least, unless there are no more
 * @param isCurrent asked after each page @returns undefined if it no longer is
 */
export async function readRows<T>(
  read: (wanted: Wanted) => Promise<Listed<T>>,
  { rows: known, marks: knownMarks }: Rows<T>,
  {
    from,
    wanted,
    pageSize,
    counting,
  }: {
    readonly from: Mark
    readonly wanted: number
    readonly pageSize: number
    readonly counting: Counting
  },
  isCurrent: () => boolean = () => true,
): Promise<ReadRows<T> | undefined> {
  const before = known.slice(0, from.index)
  const marks = knownMarks.filter(({ index }) => index < from.index)
  let { cursor } = from
  let rows: readonly T[] = []
  let isLast = false
  let total = 0
  let barren = 0
  while (!isLast && barren < MAX_BARREN && rows.length < wanted) {
    const index = before.length + rows.length
    const limit = Math.min(MOST_AT_ONCE, Math.max(wanted - rows.length, pageSize))
    const first = counting === 'first' ? {} : { count: false as const }
    const start = index === 0 ? first : { offset: index }
    const place = cursor === undefined ? start : { after: cursor }
    const { data, pagination } = await read({ limit, ...place })
    if (!isCurrent()) return undefined
    marks.push({ index, cursor })
    rows = [...rows, ...data]
    cursor = pagination.next_cursor ?? undefined
    isLast = !pagination.has_more
    barren = data.length === 0 ? barren + 1 : 0
    total = pagination.total
  }
  return {
    rows: [...before, ...rows],
    marks,
    cursor,
    total,
    isLast,
    isPaused: !isLast && barren >= MAX_BARREN,
  }
}

/** Pages to reread: those loaded so far or, in a long list, those near the window. @param seenFrom number of the first visible row */
export function readAgain(
  { rows: { length }, marks }: Rows<unknown>,
  seenFrom: number,
  pageSize: number,
): { readonly from: Mark; readonly wanted: number } {
  const near =
    length <= MOST_READ_AGAIN ? undefined : marks.filter(({ index }) => index <= seenFrom - pageSize).at(-1)
  return near ? { from: near, wanted: MOST_AT_ONCE } : { from: START, wanted: Math.max(pageSize, length) }
}

/**
 * Every row that matches, in the largest pages that the API gives, one after another along the cursor.
 *
 * @param note called after each page with how many there are so far @param isCurrent asked after each page
 * @returns undefined if it no longer is; at most `most` rows
 */
export async function readAll<T>(
  read: (wanted: Wanted) => Promise<Listed<T>>,
  {
    most,
    note,
    isCurrent,
  }: { readonly most: number; readonly note: (count: number) => void; readonly isCurrent: () => boolean },
): Promise<readonly T[] | undefined> {
  const rows: T[] = []
  let after: string | undefined
  do {
    const limit = Math.min(MOST_AT_ONCE, most - rows.length)
    const { data, pagination } = await read({
      limit,
      count: false,
      ...(after === undefined ? {} : { after }),
    })
    if (!isCurrent()) return undefined
    rows.push(...data)
    note(rows.length)
    after = pagination.has_more ? (pagination.next_cursor ?? undefined) : undefined
  } while (after !== undefined && rows.length < most)
  return rows
}
