/** Messages between the server and a reader thread: one response per request. Holds no logic. */

export interface SlowReaderOptions {
  /** Path of the database file. */
  readonly file: string
  /** Maximum rows per result. */
  readonly mostRows: number
}

export interface SlowQuestion {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

export type SlowAnswer =
  | { readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] }
  /** `code` is SQLite's, if SQLite threw. */
  | { readonly error: string; readonly code?: string }
