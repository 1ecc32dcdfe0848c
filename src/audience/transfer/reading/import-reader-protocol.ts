/**
 * Messages between the importer (`import-reader.ts`) and an import's reader thread (`import-reader-main.ts`): octets in, rows out.
 *
 * Holds no logic; values only, since they are copied between threads.
 */
import type { ImportOptions, Rejection } from '../import.js'
import type { ImportedContact } from './read-row.js'

/** Startup parameters of the thread. */
export interface ReaderOptions extends Pick<ImportOptions, 'columns' | 'hasHeading' | 'order' | 'everyRow'> {
  readonly charset: string
  /** Rows already processed: read but not sent. */
  readonly skip: number
}

/** To the thread: a part of the file, its end, or acknowledgement of rows received. */
export type ReaderTask =
  { readonly octets: Uint8Array } | { readonly isEnd: true } | { readonly rowsTaken: number }

/** A parsed row or a rejection; repeated addresses are rejections. */
export type ReadRow = ImportedContact | Rejection

export interface RowsRead {
  readonly kind: 'rows'
  /** In processing order, as a JSON array of `rowText` values. */
  readonly rows: Uint8Array
  readonly count: number
  /** File position after these rows, octets. */
  readonly octets: number
}

export type ReaderAnswer =
  | RowsRead
  /** A part was read completely. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'end' }
  /** The file cannot be read further; message for the user. */
  | { readonly kind: 'fault'; readonly message: string }
