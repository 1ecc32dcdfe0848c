/**
 * Offset pages of long newest-first lists: pages in the second half are read from the other end.
 *
 * Called by stores that know the row count. Pure.
 */
import type { Page } from '../http/pagination.js'

export interface Reading {
  /** Rows read in ascending order are reversed by `inShownOrder`. */
  readonly order: 'asc' | 'desc'
  readonly offset: number
  /** 0 for a page past the end. */
  readonly limit: number
}

export function readingOf({ limit, offset }: Page, total: number): Reading {
  const rows = Math.max(0, Math.min(limit, total - offset))
  return offset <= total / 2
    ? { order: 'desc', offset, limit: rows }
    : { order: 'asc', offset: Math.max(0, total - offset - rows), limit: rows }
}

export function inShownOrder<T>(rows: readonly T[], { order }: Reading): readonly T[] {
  return order === 'asc' ? [...rows].reverse() : rows
}
