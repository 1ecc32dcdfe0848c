/** The two databases of a copy, as `copy-database.ts` sees them. Implemented by `sqlite-side.ts` and `postgres-side.ts`. */
import type { Row, TableShape } from './copied-table.js'

export interface CopySide {
  /** Every table but the search index. */
  listTables(): Promise<readonly TableShape[]>
  countRows(table: TableShape): Promise<number>
  /** All rows, in pieces of bounded size. The caller reads to the end, or gives the side up. */
  read(table: TableShape): AsyncIterable<readonly Row[]>
  /** The last assigned value of the serial column, 0 if none was: values of deleted rows are not reused. */
  readPosition(table: TableShape): Promise<number>
}

/** Disposing leaves no copy unless `commit` succeeded. */
export interface CopySource extends CopySide, AsyncDisposable {}

export interface CopyTarget extends CopySide, AsyncDisposable {
  write(table: TableShape, rows: readonly Row[]): Promise<void>
  /** Builds indexes and checks references. Call after the last row. */
  build(): Promise<void>
  writePosition(table: TableShape, position: number): Promise<void>
  /** From here on the copy is there, and durable. */
  commit(): Promise<void>
}

/** Of rows read or written at once. */
export const MAX_ROWS = 1_000
export const MAX_OCTETS = 1_024 * 1_024

/** About: characters count once, numbers eight. */
export function sizeOf(row: Row): number {
  let size = 0
  for (const value of row) size += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
  return size
}
