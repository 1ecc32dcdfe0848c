/**
 * Pages of long lists that are shown newest first: the second half is read from its other end.
 *
 * Called by stores that know how many rows there are. Pure.
 */
import type { Page } from '../http/pagination.js'

export interface Reading {
  /** What is read in ascending order is turned round afterwards. */
  readonly order: 'asc' | 'desc'
  readonly offset: number
  /** 0 where the page is beyond the end. */
  readonly limit: number
}

export function readingOf({ limit, offset }: Page, total: number): Reading {
  const rows = Math.max(0, Math.min(limit, total - offset))
  return offset <= total / 2
    ? { order: 'desc', offset, limit: rows }
    : { order: 'asc', offset: Math.max(0, total - offset - rows), limit: rows }
}

/** Rows that were read so, as they are shown. */
export function inShownOrder<T>(rows: readonly T[], { order }: Reading): readonly T[] {
  return order === 'asc' ? [...rows].reverse() : rows
}
