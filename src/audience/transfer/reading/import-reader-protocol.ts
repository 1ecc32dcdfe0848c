/**
 * What the server and the thread that reads an imported file say to each other: octets one way, rows the other.
 *
 * Spoken by `import-reader.ts` (server) and `import-reader-main.ts` (thread). Holds no logic; values only, since they are copied.
 */
import type { ImportOptions, Rejection } from '../import.js'
import type { ImportedContact } from './read-row.js'

/** What the thread is started with. */
export interface ReaderOptions extends Pick<ImportOptions, 'columns' | 'hasHeading' | 'order' | 'everyRow'> {
  readonly charset: string
  /** Rows that are done already: read, and not told. */
  readonly skip: number
}

/** To the thread: the next part of the file, or its end; or that so many of the rows that it told are in hand. */
export type ReaderTask =
  { readonly octets: Uint8Array } | { readonly isEnd: true } | { readonly rowsTaken: number }

/** What a row says, or why it is none; repetitions of an address are rejections. */
export type ReadRow = ImportedContact | Rejection

export interface RowsRead {
  readonly kind: 'rows'
  /** In the order in which they are to be done, as the JSON of an array of what `rowText` writes. */
  readonly rows: Uint8Array
  readonly count: number
  /** How much of the file they and those before them are, octets. */
  readonly octets: number
}

/** From the thread. */
export type ReaderAnswer =
  | RowsRead
  /** A part was read to its end. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'end' }
  /** The file cannot be read any further; why, for its sender. */
  | { readonly kind: 'fault'; readonly message: string }
