/**
 * Imports of contact files, and their states. Holds next to no logic.
 *
 *   receiving -> queued -> processing -> completed | failed
 *                queued | processing -> cancelled
 */

import type { AttributeType } from '../attributes/declared-values.js'
import type { ColumnType, ColumnTypeName, TypeRules } from './reading/column-types.js'
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

/** A column of the file, and the contact field it maps to. */
export interface Column {
  readonly name: string
  /** One of `FIELDS` (`reading/columns.ts`), a field used only by presets, or `attributes.<name>`; null to skip the column. */
  readonly field: string | null
  /** Of an attribute, once the file was looked through; undefined if it is not read by type. */
  readonly found?: ColumnType
}

/** Fields by column name, as requested; values as in `Column.field`. */
export type Mapping = Readonly<Record<string, string | null>>

/** Applies to every row of a file. */
export interface EveryRow {
  /** Suppress every address for this reason. */
  readonly suppress: SuppressionReason | null
  readonly isUnsubscribed: boolean
  /** Attribute cells containing JSON keep their type (number, boolean, array, object). */
  readonly isTyped: boolean
}

export interface ImportOptions {
  /** Counts what the rows would change, and changes nothing. */
  readonly isDryRun: boolean
  /** Name of the column layout, given or detected. */
  readonly preset: string | null
  readonly everyRow: EveryRow
  /** False for a suppression list, whose addresses do not become contacts. */
  readonly makesContacts: boolean
  /** A static list to add all contacts to. */
  readonly listId: string | null
  /** Names of tags to add to all contacts; missing tags are created. */
  readonly tags: readonly string[]
  readonly mapping: Mapping
  /** Requested, by column name. */
  readonly types: Readonly<Record<string, ColumnTypeName>>
  readonly rules: TypeRules
  /** Types of attributes declared when the file was received, by name of the attribute: those that the file can use. */
  readonly declared: readonly (readonly [string, AttributeType])[]
  /** Whether `columns` have what was found. */
  readonly areTypesFound: boolean
  readonly columns: readonly Column[]
  readonly hasHeading: boolean
  /** Processing order: as in the file, or sorted by address (`AddressRuns`). Must not change once queued. */
  readonly order: 'file' | 'address'
}

export interface ImportCounts {
  readonly created: number
  readonly updated: number
  /** Rows that changed nothing. */
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
  /** As `streamDecoder` names it. */
  readonly charset: string
  readonly options: ImportOptions
  readonly octets: number
  readonly octetsRead: number
  /** Without the header row. */
  readonly rowsDone: number
  /** Why it failed; null otherwise. */
  readonly error: string | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly finishedAt: number | null
}

/** Maximum rows per file. */
export const MAX_ROWS = 2_000_000

/** Characters shown of a rejected row's address. */
const MAX_SHOWN_VALUE = 200

/** A rejected row's cell in the address column, as written; null if empty. */
export function rejectedValue(
  columns: readonly Pick<Column, 'field'>[],
  cells: readonly string[],
): string | null {
  const cell = cells[columns.findIndex(({ field }) => field === 'email')]?.trim() ?? ''
  if (cell === '') return null
  return cell.length > MAX_SHOWN_VALUE ? `${cell.slice(0, MAX_SHOWN_VALUE)}…` : cell
}

export interface Rejection {
  /** Line in the file, from 1. */
  readonly line: number
  readonly reason: string
  /** Original text. */
  readonly cells: readonly string[]
}
