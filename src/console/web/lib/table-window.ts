/** Which rows of a long table are in the document, and what keeps its place when rows come and go. Pure. */

/** Rows beyond the window, on both sides. */
const BEYOND = 12
/** Rows are added and removed in steps of this many, since each change causes a layout of the table. */
const AT_ONCE = 8
/** Before the last row, the next page is read. */
const AHEAD = 40

/** Heights and distances in pixels. */
export interface Window {
  /** Of the table that is above the window. */
  readonly top: number
  readonly height: number
  readonly rowHeight: number
}

/** Rows of the document: from `first`, before `last`. */
export function rowsIn(
  { top, height, rowHeight }: Window,
  count: number,
): { readonly first: number; readonly last: number } {
  const step = rowHeight * AT_ONCE
  const first = Math.floor(top / step) * AT_ONCE - BEYOND
  const last = Math.ceil((top + height) / step) * AT_ONCE + BEYOND
  return { first: Math.max(0, Math.min(first, count)), last: Math.min(count, last) }
}

export function isNearEnd(last: number, count: number): boolean {
  return last >= count - AHEAD
}

/** A row of the window, which stays where it is seen. */
export interface Anchor {
  readonly key: string
  readonly index: number
}

/** The first row that is whole in the window; none at the top, where new rows are to be seen. */
export function anchorIn({ top, rowHeight }: Window, keys: readonly string[]): Anchor | undefined {
  const index = Math.ceil(top / rowHeight)
  const key = keys[index]
  return top === 0 || key === undefined ? undefined : { key, index }
}

/** @returns how far the anchor's row has moved, in rows; 0 if it is gone */
export function shiftOf({ key, index }: Anchor, keys: readonly string[]): number {
  if (keys[index] === key) return 0
  const now = keys.indexOf(key)
  return now === -1 ? 0 : now - index
}
