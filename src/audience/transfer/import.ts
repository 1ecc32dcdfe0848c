/**
 * What an import is: a file of contacts on its way into an audience. Holds no logic.
 *
 *   receiving -> queued -> processing -> completed | failed
 *                queued | processing -> cancelled
 */

import type { SuppressionReason } from '../../deliverability/suppressions/suppression-store.js'

export const IMPORT_STATUSES = [
  'receiving',
  'queued',
  'processing',
  'completed',
  'failed',
  'cancelled',
] as const
export type ImportStatus = (typeof IMPORT_STATUSES)[number]

/** A column of the file: its name there, and what of a contact it tells; null for one that is passed over. */
export interface Column {
  readonly name: string
  /** One of `FIELDS` (`reading/columns.ts`), one that only presets use, or `attributes.` and a name. */
  readonly field: string | null
}

/** What its sender says of columns, by their names: as `Column.field`. */
export type Mapping = Readonly<Record<string, string | null>>

/** What a file says of everybody in it. */
export interface EveryRow {
  /** Everybody is suppressed for this reason. */
  readonly suppress: SuppressionReason | null
  readonly isUnsubscribed: boolean
  /** Cells of attributes that read as JSON other than text keep that type: numbers, booleans, arrays, objects. */
  readonly isTyped: boolean
}

export interface ImportOptions {
  /** Whose column layout the file has, given or detected. */
  readonly preset: string | null
  readonly everyRow: EveryRow
  /** False where the file is a list of suppressions, whose addresses become no contacts. */
  readonly makesContacts: boolean
  /** A static list that everybody in the file is put into. */
  readonly listId: string | null
  /** Names of tags that everybody gets; made where there are none. */
  readonly tags: readonly string[]
  readonly mapping: Mapping
  readonly columns: readonly Column[]
  readonly hasHeading: boolean
  /** In which rows are done: as the file has them, or by address (`address-runs.ts`). Never changed once an import waits. */
  readonly order: 'file' | 'address'
}

export interface ImportCounts {
  readonly created: number
  readonly updated: number
  /** Known already, and nothing said of them was new. */
  readonly unchanged: number
  readonly rejected: number
}

export interface Import extends ImportCounts {
  readonly seq: number
  readonly id: string
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly status: ImportStatus
  readonly fileName: string | null
  /** As `streamDecoder` knows it. */
  readonly charset: string
  readonly options: ImportOptions
  readonly octets: number
  readonly octetsRead: number
  /** Of the file, its heading not counted. */
  readonly rowsDone: number
  /** Why it failed. */
  readonly error: string | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly finishedAt: number | null
}

export interface Rejection {
  /** Of the file, from 1. */
  readonly line: number
  readonly reason: string
  /** As they stood there. */
  readonly cells: readonly string[]
}
