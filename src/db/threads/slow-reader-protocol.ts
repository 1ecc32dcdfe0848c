/** What the server and the thread for long reads say to each other. Holds no logic. Each question is answered by one. */

export interface SlowReaderOptions {
  /** Path of the database file. */
  readonly file: string
  /** Rows of one answer at most. */
  readonly mostRows: number
}

export interface SlowQuestion {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

export type SlowAnswer =
  | { readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] }
  /** `code` is SQLite's, where it was SQLite that threw. */
  | { readonly error: string; readonly code?: string }
